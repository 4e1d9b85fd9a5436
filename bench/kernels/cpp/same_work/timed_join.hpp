// What MIN and DISTINCT share: a binary join over time windows of one length. What arrived first leaves first, whichever
// input it came by, so both windows are one queue.
#pragma once

#include "lines.hpp"
#include "rings.hpp"

namespace yardstick {

// `Cell`: what rings keep of a mapping.
template <class Cell>
class TimedJoin {
public:
    static constexpr std::uint32_t nobody = ~std::uint32_t{0};
    struct Arrival {
        std::int64_t time;
        std::uint32_t place;           // 2 * line + port
        std::uint32_t first = nobody;  // of the groups that change when it leaves (MIN)

        std::uint32_t line() const { return place / 2; }
        int port() const { return static_cast<int>(place & 1); }
    };

    explicit TimedJoin(const Setting& setting) : length_(setting.arrivals_in_windows()), queue_(16) {}

    std::int64_t bytes() const { return lines_.bytes() + rings_.bytes() + bytes_of(queue_); }

    // Arrivals are numbered as they come; those from oldest() on, before next(), are in their windows.
    std::int64_t oldest() const { return oldest_; }
    std::int64_t next() const { return next_; }
    Arrival& operator[](std::int64_t number) { return queue_[number & (queue_.size() - 1)]; }

    bool is_due(std::int64_t now) { return oldest_ < next_ && (*this)[oldest_].time + length_ <= now; }

    std::uint32_t line_of(std::int64_t key) { return lines_.number_of(key); }
    const GrowingRing& ring(std::uint32_t line, int port) { return lines_[line].rings[port]; }
    const GrowingRings<Cell>& rings() const { return rings_; }

    // The oldest arrival leaves, with what its ring has of it.
    Cell leave() {
        const Arrival& arrival = (*this)[oldest_++];
        return rings_.pop(lines_[arrival.line()].rings[arrival.port()]);
    }

    void enter(std::int64_t now, std::uint32_t line, int port, const Cell& cell) {
        if (next_ - oldest_ == static_cast<std::int64_t>(queue_.size())) grow();
        rings_.push(lines_[line].rings[port], cell);
        (*this)[next_++] = {now, 2 * line + static_cast<std::uint32_t>(port), nobody};
    }

private:
    struct Line {
        std::int64_t key = 0;
        GrowingRing rings[2];

        bool empty() const { return (rings[0].count | rings[1].count) == 0; }
    };

    [[gnu::noinline]] void grow() {
        std::vector<Arrival> larger(2 * queue_.size());
        for (std::int64_t number = oldest_; number < next_; ++number) larger[number & (larger.size() - 1)] = (*this)[number];
        queue_ = std::move(larger);
    }

    std::int64_t length_, oldest_ = 0, next_ = 0;
    Lines<Line> lines_;
    GrowingRings<Cell> rings_;
    std::vector<Arrival> queue_;  // by number; its length is a power of two
};

}  // namespace yardstick
