// 3-way chain join (a, b), (b, c), (c, d) over count windows. Results: a, b, c, d.
#pragma once

#include "../chain_join.hpp"
#include "lines.hpp"
#include "rings.hpp"

namespace yardstick {

class GrowingHalf {
public:
    using Cell = std::int64_t;
    using Number = std::uint32_t;

    explicit GrowingHalf(const Setting& setting) : windows_(2, CountWindow(setting.window)) {}

    std::int64_t bytes() const { return lines_.bytes() + ends_.bytes() + partners_.bytes() + 2 * windows_[0].bytes(); }

    Number line_of(std::int64_t key) { return lines_.number_of(key); }
    Cell key(Number line) const { return lines_[line].key; }
    std::int64_t ends(Number line) const { return lines_[line].ends.count; }
    Cell end(Number line, std::int64_t i) const { return ends_.at(lines_[line].ends, static_cast<std::uint32_t>(i)); }
    void copy_ends(Number line, Cell* to) const { ends_.copy_few(lines_[line].ends, to); }
    std::int64_t partners(Number line) const { return lines_[line].partners.count; }
    Number partner(Number line, std::int64_t i) const { return partners_.at(lines_[line].partners, static_cast<std::uint32_t>(i)); }

    // Of the mapping that leaves next, if the window is full.
    bool has_oldest_end() const { return windows_[0].oldest() != CountWindow::nobody; }
    Number oldest_end() const { return windows_[0].oldest(); }
    bool has_oldest_partner() const { return windows_[1].oldest() != CountWindow::nobody; }
    Number oldest_partner() const { return windows_[1].oldest(); }

    // Have what will be asked for come nearer.
    void expect_ends(Number line) const { ends_.expect(lines_[line].ends); }

    void enter_end(Number line, Cell end) { enter(line, &Line::ends, ends_, end, windows_[0]); }
    // It keeps its number: as long as a mapping has a line for its partner, it stands at that line too.
    void enter_partner(Number line, Number partner) { enter(line, &Line::partners, partners_, partner, windows_[1]); }

private:
    struct alignas(64) Line {
        std::int64_t key = 0;
        GrowingRing ends, partners;

        bool empty() const { return (ends.count | partners.count) == 0; }
    };

    template <class Kept>
    void enter(Number line, GrowingRing Line::* ring, GrowingRings<Kept>& rings, Kept cell, CountWindow& window) {
        if (window.oldest() != CountWindow::nobody) rings.pop(lines_[window.oldest()].*ring);
        rings.push(lines_[line].*ring, cell);
        window.replace(line);
    }

    Lines<Line> lines_;
    GrowingRings<Cell> ends_;
    GrowingRings<Number> partners_;
    std::vector<CountWindow> windows_;  // of ends, of partners
};

template <bool withdraws>
class Chain {
public:
    using Cell = std::int64_t;

    explicit Chain(const Setting& setting) : join_(setting) {}

    std::int64_t bytes() const { return join_.half(0).bytes() + join_.half(1).bytes(); }

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row)
            if (!join_.take(batch, row, out)) return row;
        return batch.rows;
    }

private:
    ChainJoin<GrowingHalf, withdraws> join_;
};

}  // namespace yardstick
