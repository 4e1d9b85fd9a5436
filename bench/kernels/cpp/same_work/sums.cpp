// COUNT and SUM by key of a binary join over time windows of one length: counters of both inputs and a sum for each key.
// Changes: key, how many results it has, and the sum of their right values.
#include "lines.hpp"
#include "terms.hpp"

namespace {

using namespace yardstick;

class Sums {
public:
    using Cell = std::int64_t;

    explicit Sums(const Setting& setting) : length_(setting.arrivals_in_windows()), queue_(16) {}

    std::int64_t bytes() const { return lines_.bytes() + bytes_of(queue_) + bytes_of(touched_); }

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            const std::int64_t now = batch.before + row;
            std::int64_t due = oldest_;
            while (due < next_ && arrival(due).time + length_ <= now) ++due;
            if (!out.has_room(2 * (due - oldest_ + 1))) return row;
            while (oldest_ < due) leave(arrival(oldest_++));
            enter(now, batch.port[row], batch.key[row], integer(batch.value[row]));
            for (const std::uint32_t number : touched_) deliver(lines_[number], row, out);
            touched_.clear();
        }
        return batch.rows;
    }

private:
    struct alignas(64) Line {
        std::int64_t key = 0;
        std::int64_t mappings[2] = {0, 0};
        std::int64_t sum = 0;  // of the right input's values
        std::int64_t shown_results = 0, shown_sum = 0;
        bool touched = false;

        bool empty() const { return (mappings[0] | mappings[1] | shown_results) == 0; }
    };
    struct Arrival {
        std::int64_t time, value;
        std::uint32_t line;
        std::int32_t port;
    };

    Arrival& arrival(std::int64_t number) { return queue_[number & (queue_.size() - 1)]; }

    void leave(const Arrival& gone) { change(gone.line, gone.port, -gone.value, -1); }

    void enter(std::int64_t now, std::int32_t port, std::int64_t key, std::int64_t value) {
        const std::uint32_t number = lines_.number_of(key);
        if (next_ - oldest_ == static_cast<std::int64_t>(queue_.size())) grow();
        arrival(next_++) = {now, value, number, port};
        change(number, port, value, 1);
    }

    void change(std::uint32_t number, std::int32_t port, std::int64_t value, std::int64_t mappings) {
        Line& line = lines_[number];
        line.mappings[port] += mappings;
        if (__builtin_add_overflow(line.sum, port == 1 ? value : 0, &line.sum)) throw std::overflow_error("a sum has more than 64 bits");
        if (!line.touched) touched_.push_back(number);
        line.touched = true;
    }

    static void deliver(Line& line, std::int64_t row, Results<Cell>& out) {
        line.touched = false;
        const std::int64_t results = line.mappings[0] * line.mappings[1];
        std::int64_t sum;
        if (__builtin_mul_overflow(line.sum, line.mappings[0], &sum)) throw std::overflow_error("a sum has more than 64 bits");
        if (results == line.shown_results && (results == 0 || sum == line.shown_sum)) return;
        if (line.shown_results != 0) out.change(row, -1, line.key, integer_id(line.shown_results), integer_id(line.shown_sum));
        if (results != 0) out.change(row, 1, line.key, integer_id(results), integer_id(sum));
        line.shown_results = results;
        line.shown_sum = sum;
    }

    [[gnu::noinline]] void grow() {
        std::vector<Arrival> larger(2 * queue_.size());
        for (std::int64_t number = oldest_; number < next_; ++number) larger[number & (larger.size() - 1)] = arrival(number);
        queue_ = std::move(larger);
    }

    std::int64_t length_, oldest_ = 0, next_ = 0;
    Lines<Line> lines_;
    std::vector<Arrival> queue_;  // by number; its length is a power of two
    std::vector<std::uint32_t> touched_;  // the lines that a tick changes
};

}  // namespace

SAME_WORK(Sums)
