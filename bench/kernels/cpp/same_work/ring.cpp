// One ring index: insertion with eviction of the oldest (input 0), and probing (input 1). Results: values of the mappings.
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
        return batch.port[0] == 0 ? insert(batch) : probe(batch, from, out);
    }

private:
    struct alignas(32) Line {
        std::int64_t key = 0;
        GrowingRing ring;

        bool empty() const { return ring.count == 0; }
    };

    static constexpr std::int64_t ahead = 16;  // arrivals

    void expect(const Batch& batch, std::int64_t row) const {
        if (row < batch.rows) lines_.expect(batch.key[row]);
    }

    std::int64_t insert(const Batch& batch) {
        for (std::int64_t row = 0; row < batch.rows; ++row) {
            expect(batch, row + ahead);
            const std::uint32_t number = lines_.number_of(batch.key[row]), oldest = window_.oldest();
            if (oldest != CountWindow::nobody) rings_.pop(lines_[oldest].ring);
            rings_.push(lines_[number].ring, batch.value[row]);
            window_.replace(number);
        }
        return batch.rows;
    }

    std::int64_t probe(const Batch& batch, std::int64_t from, Results<Cell>& out) const {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            expect(batch, row + ahead);
            const Line* line = lines_.find(batch.key[row]);
            if (line == nullptr) continue;
            const std::int64_t count = line->ring.count;
            if (!out.has_room(count)) return row;
            std::fill_n(out.tick + out.made, count, static_cast<std::int32_t>(row));
            rings_.copy(line->ring, out.cells + out.made);
            out.made += count;
        }
        return batch.rows;
    }

    Lines<Line> lines_;
    GrowingRings<Cell> rings_;
    CountWindow window_;
};

}  // namespace

SAME_WORK(RingIndex)
