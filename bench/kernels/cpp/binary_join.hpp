// What MIN and DISTINCT share: a binary join over time windows with an arrival at each tick, so that the expiry of each
// result is known when it is made.
#pragma once

#include "yardstick.hpp"

namespace yardstick {

class BinaryJoin {
public:
    struct Match {
        std::int64_t value;
        std::int64_t arrived;
    };

    explicit BinaryJoin(const Setting& setting)
        : size_(setting.arrivals_in_windows()), lines_(setting.keys), rings_(lines_.size() * 2, setting.most), queue_(size_) {}

    std::int64_t size() const { return size_; }

    // The arrival at `now` leaves when another comes at `now + size()`. `visit` gets the other input's mappings of its key,
    // then it enters.
    template <class Visit>
    void take(std::int64_t now, int port, std::int64_t key, std::int64_t value, Visit visit) {
        const std::int64_t day = now % size_;
        if (now >= size_) rings_.pop(ring(queue_[day]));
        const std::int64_t place = lines_.place_of(key);
        queue_[day] = static_cast<std::int32_t>(2 * place + port);
        const std::int64_t other = 2 * place + 1 - port;
        const Ring& others = ring(other);
        for (std::int64_t i = 0; i < others.count; ++i) visit(rings_.at(other, others, i));
        rings_.push(2 * place + port, ring(2 * place + port), {value, now});
    }

private:
    struct Line {
        std::int64_t key = 0;
        Ring rings[2];
    };

    Ring& ring(std::int64_t run) { return lines_[run / 2].rings[run & 1]; }

    std::int64_t size_;
    Table<Line> lines_;
    Runs<Match> rings_;
    std::vector<std::int32_t> queue_;  // by age: 2 * line + port
};

}  // namespace yardstick
