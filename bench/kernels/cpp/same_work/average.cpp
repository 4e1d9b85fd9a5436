// The average of each group over a count window. Changes: group, average (the id of an exact decimal).
#include "lines.hpp"
#include "terms.hpp"

namespace {

using namespace yardstick;

class Average {
public:
    using Cell = std::int64_t;

    explicit Average(const Setting& setting) : window_(setting.window), values_(setting.window) {}

    std::int64_t bytes() const { return groups_.bytes() + window_.bytes() + bytes_of(values_); }

    // Blocks of arrivals: first the sums change, then all averages are made at once, then those that differ are delivered.
    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        std::int64_t row = from;
        while (row < batch.rows && out.has_room(most_of_one)) {
            const std::int64_t end = std::min({batch.rows, row + block, row + (out.room - out.made) / most_of_one});
            std::int64_t changes = 0;
            groups_.make_room(end - row);  // groups that become empty are still to be withdrawn
            for (; row < end; ++row) changes = slide(row, batch.key[row], integer(batch.value[row]), changes);
            average_ids(sums_, counts_, changes, averages_);
            deliver(changes, out);
        }
        return row;
    }

private:
    static constexpr std::int64_t most_of_one = 4, block = 128;

    struct alignas(32) Group {
        std::int64_t key = 0, sum = 0, count = 0;
        std::int64_t shown = 0;  // the average last delivered, 0 for none

        bool empty() const { return count == 0; }
        void add(std::int64_t value, std::int64_t times) {
            if (__builtin_add_overflow(sum, value, &sum)) throw std::overflow_error("a sum has more than 64 bits");
            count += times;
        }
    };

    // Gives the number of changes so far.
    std::int64_t slide(std::int64_t row, std::int64_t key, std::int64_t value, std::int64_t changes) {
        const std::uint32_t number = groups_.number_of(key), old = window_.oldest();
        if (old != CountWindow::nobody) {
            groups_[old].add(-values_[window_.slot()], -1);
            note(changes, row, old);
            changes += old != number;
        }
        groups_[number].add(value, 1);
        note(changes, row, number);
        values_[window_.slot()] = value;
        window_.replace(number);
        return changes + 1;
    }

    void note(std::int64_t change, std::int64_t row, std::uint32_t number) {
        const Group& group = groups_[number];
        rows_[change] = static_cast<std::int32_t>(row);
        numbers_[change] = number;
        sums_[change] = group.sum;
        counts_[change] = group.count;
    }

    void deliver(std::int64_t changes, Results<Cell>& to) {
        Results<Cell> out = to;
        for (std::int64_t i = 0; i < changes; ++i) {
            Group& group = groups_[numbers_[i]];
            Cell now = averages_[i];
            if (counts_[i] == 0)
                now = 0;
            else if (now == 0)
                now = average_id_by_digits(sums_[i], counts_[i]);
            if (now == group.shown) continue;
            if (group.shown != 0) out.change(rows_[i], -1, group.key, group.shown);
            if (now != 0) out.change(rows_[i], 1, group.key, now);
            group.shown = now;
        }
        to = out;
    }

    Lines<Group> groups_;
    CountWindow window_;
    std::vector<std::int64_t> values_;  // of the window's mappings
    // The changes of a block: the arrival that makes each, the group, and what it then has.
    std::int32_t rows_[2 * block];
    std::uint32_t numbers_[2 * block];
    std::int64_t sums_[2 * block], counts_[2 * block], averages_[2 * block];
};

}  // namespace

SAME_WORK(Average)
