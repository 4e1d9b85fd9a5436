// MIN of each group after a binary join: a staircase for each group, and a calendar of when its top step expires.
// Results: group, smallest value.
#include "binary_join.hpp"

namespace {

using namespace yardstick;

// For values that come evenly a staircase has about the logarithm of the group's size.
constexpr int most_steps = 64;
constexpr std::int32_t none = -1;

// Values that are smallest at some time to come, by expiry: the last one is the smallest and the first to go.
class Staircase {
public:
    std::int64_t smallest() const { return height_ > 0 ? steps_[height_ - 1].value : 0; }
    std::int64_t next_expiry() const { return height_ > 0 ? steps_[height_ - 1].expiry : 0; }
    bool empty() const { return height_ == 0; }

    void expire(std::int64_t now) {
        while (height_ > 0 && steps_[height_ - 1].expiry <= now) --height_;
    }

    // Whether the last step is a new one.
    bool add(std::int64_t value, std::int64_t expiry) {
        int low = height_;
        while (low > 0 && steps_[low - 1].expiry < expiry) --low;
        if (low > 0 && steps_[low - 1].value <= value) return false;
        if (low > 0 && steps_[low - 1].expiry == expiry) --low;
        int high = low;
        while (high < height_ && steps_[high].value >= value) ++high;
        const int rest = height_ - high;
        if (low + 1 + rest > most_steps) throw std::runtime_error("a staircase is too high");
        if (high <= low)
            std::copy_backward(steps_ + high, steps_ + height_, steps_ + low + 1 + rest);
        else
            std::copy(steps_ + high, steps_ + height_, steps_ + low + 1);
        steps_[low] = {value, expiry};
        height_ = low + 1 + rest;
        return rest == 0;
    }

private:
    struct Step {
        std::int64_t value, expiry;
    };
    Step steps_[most_steps];
    int height_ = 0;
};

class Minimum {
public:
    using Cell = std::int64_t;

    explicit Minimum(const Setting& setting)
        : join_(setting), groups_(setting.groups), stairs_(groups_.size()), first_of_day_(join_.size(), none) {
        touched_.reserve(groups_.size());
    }

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            // Every group may lose its last step at one tick, and get another.
            if (!out.has_room(known_ + 1)) return row;
            const std::int64_t now = batch.before + row;
            const int port = batch.port[row];
            expire(now);
            const std::int64_t value = port == 0 ? group_of(batch.value[row]) : batch.value[row];
            join_.take(now, port, batch.key[row], value, [&](const BinaryJoin::Match& match) {
                const std::int64_t group = port == 0 ? value : match.value, step = port == 0 ? match.value : value;
                if (stairs_[group].add(step, match.arrived + join_.size())) touch(group, now);
            });
            for (const std::int32_t group : touched_) deliver(group, row, out);
            touched_.clear();
        }
        return batch.rows;
    }

private:
    struct Group {
        std::int64_t key = 0;
        std::int64_t shown = 0;                    // the value last delivered, 0 for none
        std::int64_t touched_at = none;            // the last tick that changed it
        std::int64_t day = none;                   // where in the calendar it stands
        std::int32_t following = none, previous = none;  // others of that day
        bool is_new = true;
    };

    std::int64_t group_of(std::int64_t key) {
        const std::int64_t place = groups_.place_of(key);
        known_ += groups_[place].is_new;
        groups_[place].is_new = false;
        return place;
    }

    void touch(std::int64_t place, std::int64_t now) {
        if (groups_[place].touched_at == now) return;
        groups_[place].touched_at = now;
        touched_.push_back(static_cast<std::int32_t>(place));
    }

    void expire(std::int64_t now) {
        std::int32_t& first = first_of_day_[now % join_.size()];
        for (std::int32_t place = first; place != none; place = groups_[place].following) {
            stairs_[place].expire(now);
            groups_[place].day = none;
            touch(place, now);
        }
        first = none;
    }

    void deliver(std::int32_t place, std::int64_t row, Results<Cell>& out) {
        Group& group = groups_[place];
        const Staircase& stairs = stairs_[place];
        const std::int64_t smallest = stairs.smallest();
        if (smallest != 0 && smallest != group.shown) out.add(row, group.key, smallest);
        group.shown = smallest;
        const std::int64_t day = stairs.empty() ? none : stairs.next_expiry() % join_.size();
        if (day == group.day) return;
        unlink(group);
        if (day != none) link(place, group, day);
    }

    void unlink(Group& group) {
        if (group.day == none) return;
        if (group.following != none) groups_[group.following].previous = group.previous;
        if (group.previous != none)
            groups_[group.previous].following = group.following;
        else
            first_of_day_[group.day] = group.following;
        group.day = none;
    }

    void link(std::int32_t place, Group& group, std::int64_t day) {
        group.day = day;
        group.following = first_of_day_[day];
        group.previous = none;
        if (group.following != none) groups_[group.following].previous = place;
        first_of_day_[day] = place;
    }

    BinaryJoin join_;
    Table<Group> groups_;
    std::vector<Staircase> stairs_;           // by place of the group
    std::vector<std::int32_t> first_of_day_;  // the calendar: the first group whose last step goes at a tick
    std::vector<std::int32_t> touched_;       // the groups that this tick changes
    std::int64_t known_ = 0;
};

}  // namespace

YARDSTICK(Minimum)
