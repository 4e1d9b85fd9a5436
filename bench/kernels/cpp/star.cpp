// 3-way star join a.k = b.k = c.k over count windows. Results: key, value of each input.
#include "yardstick.hpp"

namespace {

using namespace yardstick;

constexpr int inputs = 3;

class Star {
public:
    using Cell = std::int64_t;

    explicit Star(const Setting& setting)
        : window_(setting.window), lines_(setting.keys), rings_(lines_.size() * inputs, setting.most) {
        for (auto& queue : queues_) queue.places.resize(window_);
    }

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            const int port = batch.port[row];
            const int a = port == 0 ? 1 : 0;
            const int b = port == 2 ? 1 : 2;
            const std::int64_t key = batch.key[row], value = batch.value[row];
            const std::int64_t place = lines_.place_of(key);
            Line& line = lines_[place];
            const std::int64_t outer = line.rings[a].count, inner = line.rings[b].count;
            const std::int64_t results = outer * inner;
            if (!out.has_room(results)) return row;
            if (results > 0) {
                std::fill_n(out.tick + out.made, results, static_cast<std::int32_t>(row));
                std::fill_n(out.column(0) + out.made, results, key);
                std::fill_n(out.column(1 + port) + out.made, results, value);
                Cell* to_a = out.column(1 + a) + out.made;
                Cell* to_b = out.column(1 + b) + out.made;
                for (std::int64_t i = 0; i < outer; ++i, to_a += inner, to_b += inner) {
                    std::fill_n(to_a, inner, rings_.at(place * inputs + a, line.rings[a], i));
                    rings_.copy(place * inputs + b, line.rings[b], to_b);
                }
                out.made += results;
            }
            insert(port, place, value);
        }
        return batch.rows;
    }

private:
    struct alignas(64) Line {
        std::int64_t key = 0;
        Ring rings[inputs];
    };
    struct Queue {
        std::vector<std::int32_t> places;  // lines by age
        std::int64_t inserted = 0, slot = 0;
    };

    void insert(int port, std::int64_t place, std::int64_t value) {
        Queue& queue = queues_[port];
        if (queue.inserted >= window_) rings_.pop(lines_[queue.places[queue.slot]].rings[port]);
        queue.places[queue.slot] = static_cast<std::int32_t>(place);
        rings_.push(place * inputs + port, lines_[place].rings[port], value);
        ++queue.inserted;
        if (++queue.slot == window_) queue.slot = 0;
    }

    std::int64_t window_;
    Table<Line> lines_;
    Runs<Cell> rings_;
    Queue queues_[inputs];
};

}  // namespace

YARDSTICK(Star)
