// 3-way star join a.k = b.k = c.k over count windows. Results: key, value of each input.
#pragma once

#include "lines.hpp"
#include "rings.hpp"

namespace yardstick {

// `withdraws`: the results of a mapping that leaves are delivered once more, with the other sign.
template <bool withdraws>
class Star {
public:
    using Cell = std::int64_t;

    explicit Star(const Setting& setting) : windows_(inputs, CountWindow(setting.window)) {}

    std::int64_t bytes() const { return lines_.bytes() + rings_.bytes() + inputs * windows_[0].bytes(); }

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            const int port = batch.port[row];
            const std::uint32_t oldest = windows_[port].oldest(), number = lines_.number_of(batch.key[row]);
            const bool full = oldest != CountWindow::nobody;
            const std::int64_t gone = withdraws && full ? results(lines_[oldest], port) : 0;
            if (!out.has_room(gone + results(lines_[number], port))) return row;
            if (full) {
                const Cell value = rings_.pop(lines_[oldest].rings[port]);
                if (withdraws) deliver(row, -1, lines_[oldest], port, value, out);
            }
            deliver(row, 1, lines_[number], port, batch.value[row], out);
            rings_.push(lines_[number].rings[port], batch.value[row]);
            windows_[port].replace(number);
        }
        return batch.rows;
    }

private:
    static constexpr int inputs = 3;

    struct alignas(64) Line {
        std::int64_t key = 0;
        GrowingRing rings[inputs];

        bool empty() const { return (rings[0].count | rings[1].count | rings[2].count) == 0; }
    };

    // How many a mapping of an input has.
    static std::int64_t results(const Line& line, int port) {
        return std::int64_t{line.rings[port == 0 ? 1 : 0].count} * line.rings[port == 2 ? 1 : 2].count;
    }

    void deliver(std::int64_t row, int sign, const Line& line, int port, Cell value, Results<Cell>& out) const {
        const std::int64_t made = results(line, port);
        if (made == 0) return;
        // The shorter one outside, so that what is copied is long.
        int a = port == 0 ? 1 : 0, b = port == 2 ? 1 : 2;
        if (line.rings[a].count > line.rings[b].count) std::swap(a, b);
        std::fill_n(out.tick + out.made, made, static_cast<std::int32_t>(row));
        if (withdraws) std::fill_n(out.sign + out.made, made, static_cast<std::int8_t>(sign));
        std::fill_n(out.column(0) + out.made, made, line.key);
        std::fill_n(out.column(1 + port) + out.made, made, value);
        product(line.rings[a], line.rings[b], out.column(1 + a) + out.made, out.column(1 + b) + out.made);
        out.made += made;
    }

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

}  // namespace yardstick
