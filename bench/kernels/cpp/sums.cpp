// COUNT and SUM by key of a binary join over time windows with an arrival at each tick: counters of both inputs and a sum for each
// key. Results: key, how many results it has, and the sum of their right values.
#include "yardstick.hpp"

namespace {

using namespace yardstick;

class Sums {
public:
    using Cell = std::int64_t;

    explicit Sums(const Setting& setting)
        : size_(setting.arrivals_in_windows()), lines_(setting.keys), values_(size_), places_(size_) {}

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            if (!out.has_room(2)) return row;
            const std::int64_t now = batch.before + row, day = now % size_, place = lines_.place_of(batch.key[row]);
            const std::int64_t old = now < size_ ? place : places_[day] / 2;
            if (now >= size_) change(old, places_[day] & 1, -values_[day], -1);
            values_[day] = number(batch.value[row]);
            places_[day] = static_cast<std::int32_t>(2 * place + batch.port[row]);
            change(place, batch.port[row], values_[day], 1);
            deliver(lines_[old], row, out);
            if (place != old) deliver(lines_[place], row, out);
        }
        return batch.rows;
    }

private:
    struct Line {
        std::int64_t key = 0;
        std::int64_t mappings[2] = {0, 0};
        std::int64_t sum = 0;  // of the right input's values
        std::int64_t shown_results = 0, shown_sum = 0;
    };

    void change(std::int64_t place, int port, std::int64_t value, std::int64_t mappings) {
        lines_[place].mappings[port] += mappings;
        lines_[place].sum += port * value;
    }

    static void deliver(Line& line, std::int64_t row, Results<Cell>& out) {
        const std::int64_t results = line.mappings[0] * line.mappings[1], sum = line.mappings[0] * line.sum;
        if (results != 0 && (results != line.shown_results || sum != line.shown_sum)) out.add(row, line.key, results, sum);
        line.shown_results = results;
        line.shown_sum = sum;
    }

    std::int64_t size_;
    Table<Line> lines_;
    std::vector<std::int64_t> values_;  // by age
    std::vector<std::int32_t> places_;  // by age: 2 * line + port
};

}  // namespace

YARDSTICK(Sums)
