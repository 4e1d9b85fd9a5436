// The average of each group over a count window. Results: group, average (the bits of a double).
#include <cstring>

#include "yardstick.hpp"

namespace {

using namespace yardstick;

class Average {
public:
    using Cell = std::int64_t;

    explicit Average(const Setting& setting) : window_(setting.window), groups_(setting.keys), queue_(window_) {}

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            if (!out.has_room(2)) return row;
            const std::int64_t place = groups_.place_of(batch.key[row]);
            const std::int64_t value = number(batch.value[row]);
            Member& member = queue_[slot_];
            if (inserted_ >= window_) {
                Group& old = groups_[member.place];
                old.sum -= member.value;
                --old.count;
                if (member.place != place) deliver(old, row, out);
            }
            member = {value, place};
            ++inserted_;
            if (++slot_ == window_) slot_ = 0;
            Group& group = groups_[place];
            group.sum += value;
            ++group.count;
            deliver(group, row, out);
        }
        return batch.rows;
    }

private:
    struct Group {
        std::int64_t key = 0, sum = 0, count = 0;
        double shown = std::numeric_limits<double>::quiet_NaN();
    };
    struct Member {
        std::int64_t value, place;
    };

    static void deliver(Group& group, std::int64_t row, Results<Cell>& out) {
        if (group.count == 0) {
            group.shown = std::numeric_limits<double>::quiet_NaN();
            return;
        }
        const double now = static_cast<double>(group.sum) / static_cast<double>(group.count);
        if (now == group.shown) return;
        group.shown = now;
        Cell bits;
        std::memcpy(&bits, &now, sizeof bits);
        out.add(row, group.key, bits);
    }

    std::int64_t window_, inserted_ = 0, slot_ = 0;
    Table<Group> groups_;
    std::vector<Member> queue_;
};

}  // namespace

YARDSTICK(Average)
