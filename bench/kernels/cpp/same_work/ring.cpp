// A join of two: mappings that enter a window while the oldest leave it (input 0), and such as ask for them, there for a moment
// (input 1). Results: values of the mappings.
#include "lines.hpp"
#include "rings.hpp"

namespace {

using namespace yardstick;

class RingIndex {
public:
    using Cell = std::int64_t;

    explicit RingIndex(const Setting& setting) : window_(setting.window) {}

    std::int64_t bytes() const { return lines_.bytes() + rings_.bytes() + window_.bytes(); }

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        return batch.port[0] == 0 ? insert(batch, from, out) : probe(batch, from, out);
    }

private:
    struct alignas(64) Line {
        std::int64_t key = 0;
        GrowingRing rings[2];

        bool empty() const { return (rings[0].count | rings[1].count) == 0; }
    };

    static constexpr std::int64_t ahead = 16;  // arrivals

    void expect(const Batch& batch, std::int64_t row) const {
        if (row < batch.rows) lines_.expect(batch.key[row]);
    }

    std::int64_t insert(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            expect(batch, row + ahead);
            const std::uint32_t number = lines_.number_of(batch.key[row]), oldest = window_.oldest();
            if (!out.has_room(lines_[number].rings[1].count)) return row;
            if (oldest != CountWindow::nobody) rings_.pop(lines_[oldest].rings[0]);
            deliver(row, lines_[number].rings[1], out);
            rings_.push(lines_[number].rings[0], batch.value[row]);
            window_.replace(number);
        }
        return batch.rows;
    }

    std::int64_t probe(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            expect(batch, row + ahead);
            const std::uint32_t number = lines_.number_of(batch.key[row]);
            if (!out.has_room(lines_[number].rings[0].count)) return row;
            deliver(row, lines_[number].rings[0], out);
            rings_.push(lines_[number].rings[1], batch.value[row]);
            rings_.pop(lines_[number].rings[1]);
        }
        return batch.rows;
    }

    void deliver(std::int64_t row, const GrowingRing& partners, Results<Cell>& out) const {
        std::fill_n(out.tick + out.made, partners.count, static_cast<std::int32_t>(row));
        rings_.copy(partners, out.cells + out.made);
        out.made += partners.count;
    }

    Lines<Line> lines_;
    GrowingRings<Cell> rings_;
    CountWindow window_;
};

}  // namespace

SAME_WORK(RingIndex)
