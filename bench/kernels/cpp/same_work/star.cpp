// 3-way star join a.k = b.k = c.k over count windows. Results: key, value of each input.
#include "lines.hpp"
#include "rings.hpp"

namespace {

using namespace yardstick;

constexpr int inputs = 3;

class Star {
public:
    using Cell = std::int64_t;

    explicit Star(const Setting& setting) : windows_(inputs, CountWindow(setting.window)) {}

    std::int64_t bytes() const { return lines_.bytes() + rings_.bytes() + inputs * windows_[0].bytes(); }

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            const int port = batch.port[row];
            const std::int64_t value = batch.value[row];
            const std::uint32_t number = lines_.number_of(batch.key[row]);
            Line& line = lines_[number];
            // The shorter one outside, so that what is copied is long.
            int a = port == 0 ? 1 : 0, b = port == 2 ? 1 : 2;
            if (line.rings[a].count > line.rings[b].count) std::swap(a, b);
            const std::int64_t results = std::int64_t{line.rings[a].count} * line.rings[b].count;
            if (!out.has_room(results)) return row;
            if (results > 0) {
                std::fill_n(out.tick + out.made, results, static_cast<std::int32_t>(row));
                std::fill_n(out.column(0) + out.made, results, line.key);
                std::fill_n(out.column(1 + port) + out.made, results, value);
                product(line.rings[a], line.rings[b], out.column(1 + a) + out.made, out.column(1 + b) + out.made);
                out.made += results;
            }
            const std::uint32_t oldest = windows_[port].oldest();
            if (oldest != CountWindow::nobody) rings_.pop(lines_[oldest].rings[port]);
            rings_.push(line.rings[port], value);
            windows_[port].replace(number);
        }
        return batch.rows;
    }

private:
    struct alignas(64) Line {
        std::int64_t key = 0;
        GrowingRing rings[inputs];

        bool empty() const { return (rings[0].count | rings[1].count | rings[2].count) == 0; }
    };

    void product(const GrowingRing& outer, const GrowingRing& inner, Cell* to_outer, Cell* to_inner) const {
        for (std::uint32_t i = 0; i < outer.count; ++i, to_outer += inner.count, to_inner += inner.count) {
            std::fill_n(to_outer, inner.count, rings_.at(outer, i));
            rings_.copy(inner, to_inner);
        }
    }

    Lines<Line> lines_;
    GrowingRings<Cell> rings_;
    std::vector<CountWindow> windows_;
};

}  // namespace

SAME_WORK(Star)
