// Left mappings without a right one of the same key, over count windows. Results: key, value of the left input.
#include "yardstick.hpp"

namespace {

using namespace yardstick;

class Negation {
public:
    using Cell = std::int64_t;

    explicit Negation(const Setting& setting)
        : window_(setting.window), most_(setting.most), lines_(setting.keys), left_(lines_.size(), most_) {
        for (auto& queue : queues_) queue.places.resize(window_);
    }

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            if (!out.has_room(most_)) return row;
            const int port = batch.port[row];
            const std::int64_t place = lines_.place_of(batch.key[row]);
            const std::int64_t old = queues_[port].exchange(place);
            if (port == 0)
                take_left(row, place, old, batch.value[row], out);
            else if (old != place)
                take_right(row, place, old, out);
        }
        return batch.rows;
    }

private:
    struct alignas(32) Line {
        std::int64_t key = 0;
        Ring left;
        std::int64_t right = 0;
    };
    struct Queue {
        std::vector<std::int32_t> places;  // lines by age
        std::size_t inserted = 0, slot = 0;

        // The line that leaves for this one, or -1.
        std::int64_t exchange(std::int64_t place) {
            const std::int64_t old = inserted < places.size() ? -1 : places[slot];
            places[slot] = static_cast<std::int32_t>(place);
            ++inserted;
            if (++slot == places.size()) slot = 0;
            return old;
        }
    };

    void take_left(std::int64_t row, std::int64_t place, std::int64_t old, std::int64_t value, Results<Cell>& out) {
        if (old >= 0) left_.pop(lines_[old].left);
        Line& line = lines_[place];
        left_.push(place, line.left, value);
        if (line.right == 0) out.add(row, line.key, value);
    }

    void take_right(std::int64_t row, std::int64_t place, std::int64_t old, Results<Cell>& out) {
        ++lines_[place].right;
        if (old < 0) return;
        Line& line = lines_[old];
        if (--line.right > 0) return;
        const std::int64_t count = line.left.count;
        std::fill_n(out.tick + out.made, count, static_cast<std::int32_t>(row));
        std::fill_n(out.column(0) + out.made, count, line.key);
        left_.copy(old, line.left, out.column(1) + out.made);
        out.made += count;
    }

    std::int64_t window_, most_;
    Table<Line> lines_;
    Runs<Cell> left_;
    Queue queues_[2];
};

}  // namespace

YARDSTICK(Negation)
