// MIN of each group after a binary join: a staircase for each group, which is linked to the arrival with which its top step goes.
// Changes: group, smallest value.
#include "staircases.hpp"
#include "terms.hpp"
#include "timed_join.hpp"

namespace {

using namespace yardstick;

class Minimum {
public:
    using Cell = std::int64_t;

    explicit Minimum(const Setting& setting) : join_(setting) {}

    std::int64_t bytes() const { return join_.bytes() + groups_.bytes() + stairs_.bytes() + bytes_of(touched_); }

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            // Every group may change, and one may come.
            if (!out.has_room(2 * (groups_.size() + 1))) return row;
            const std::int64_t now = batch.before + row;
            while (join_.is_due(now)) leave();
            const int port = batch.port[row];
            enter(now, port, batch.key[row], port == 0 ? groups_.number_of(batch.value[row]) : integer(batch.value[row]));
            for (const std::uint32_t number : touched_) deliver(number, row, out);
            touched_.clear();
        }
        return batch.rows;
    }

private:
    struct Match {
        std::int64_t value;   // a number of the right input; of the left one the number of its group
        std::int64_t number;  // of the arrival
    };
    using Join = TimedJoin<Match>;
    static constexpr std::uint32_t nobody = Join::nobody;

    struct alignas(64) Group {
        std::int64_t key = 0;
        std::int64_t shown = 0;  // the id last delivered, 0 for none
        std::int64_t until = 0;  // the arrival to which it is linked, where it is
        std::uint32_t following = nobody, previous = nobody;  // others of that arrival
        Staircase stairs;
        std::uint32_t left = 0;  // mappings of the left input
        bool linked = false, touched = false;

        bool empty() const { return left == 0 && shown == 0; }
    };

    void leave() {
        const auto oldest = join_[join_.oldest()];
        const Match gone = join_.leave();
        for (std::uint32_t number = oldest.first; number != nobody; number = groups_[number].following) {
            Group& group = groups_[number];
            stairs_.leave(group.stairs, gone.number);
            group.linked = false;
            touch(number, group);
        }
        if (oldest.port() == 0) --groups_[static_cast<std::uint32_t>(gone.value)].left;
    }

    // `value`: as in Match.
    void enter(std::int64_t now, int port, std::int64_t key, std::int64_t value) {
        const std::uint32_t line = join_.line_of(key);
        const GrowingRing& partners = join_.ring(line, 1 - port);
        for (std::uint32_t i = 0; i < partners.count; ++i) {
            const Match& match = join_.rings().at(partners, i);
            const std::uint32_t number = static_cast<std::uint32_t>(port == 0 ? value : match.value);
            Group& group = groups_[number];
            if (stairs_.add(group.stairs, {port == 0 ? match.value : value, match.number})) touch(number, group);
        }
        if (port == 0) ++groups_[static_cast<std::uint32_t>(value)].left;
        join_.enter(now, line, port, {value, join_.next()});
    }

    void touch(std::uint32_t number, Group& group) {
        if (group.touched) return;
        group.touched = true;
        touched_.push_back(number);
    }

    void deliver(std::uint32_t number, std::int64_t row, Results<Cell>& out) {
        Group& group = groups_[number];
        group.touched = false;
        const bool any = group.stairs.height > 0;
        const std::int64_t smallest = any ? integer_id(stairs_.top(group.stairs).value) : 0;
        if (smallest != group.shown) {
            if (group.shown != 0) out.change(row, -1, group.key, group.shown);
            if (any) out.change(row, 1, group.key, smallest);
            group.shown = smallest;
        }
        if (group.linked && any && stairs_.top(group.stairs).until == group.until) return;
        if (group.linked) unlink(group);
        if (any) link(number, group, stairs_.top(group.stairs).until);
    }

    void unlink(Group& group) {
        if (group.following != nobody) groups_[group.following].previous = group.previous;
        (group.previous != nobody ? groups_[group.previous].following : join_[group.until].first) = group.following;
        group.linked = false;
    }

    void link(std::uint32_t number, Group& group, std::int64_t until) {
        std::uint32_t& first = join_[until].first;
        group.until = until;
        group.following = first;
        group.previous = nobody;
        if (first != nobody) groups_[first].previous = number;
        first = number;
        group.linked = true;
    }

    Join join_;
    Lines<Group> groups_;  // by value of the left input
    Staircases stairs_;
    std::vector<std::uint32_t> touched_;  // the groups that a tick changes
};

}  // namespace

SAME_WORK(Minimum)
