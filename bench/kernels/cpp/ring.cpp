// One ring index: insertion with eviction of the oldest (input 0), and probing (input 1). Results: slots of the window.
#include "yardstick.hpp"

namespace {

using namespace yardstick;

class RingIndex {
public:
    using Cell = std::int32_t;

    explicit RingIndex(const Setting& setting)
        : window_(setting.window), entries_(setting.keys), rings_(entries_.size(), setting.most), places_(window_), values_(window_) {}

    std::int64_t take(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        return batch.port[0] == 0 ? insert(batch) : probe(batch, from, out);
    }

    std::int64_t value(std::int64_t slot) const { return values_[slot]; }

private:
    struct Entry {
        std::int64_t key = 0;
        Ring ring;
    };

    std::int64_t insert(const Batch& batch) {
        for (std::int64_t row = 0; row < batch.rows; ++row) {
            const std::int64_t place = entries_.place_of(batch.key[row]);
            if (inserted_ >= window_) rings_.pop(entries_[places_[slot_]].ring);
            places_[slot_] = static_cast<std::int32_t>(place);
            values_[slot_] = batch.value[row];
            rings_.push(place, entries_[place].ring, static_cast<Cell>(slot_));
            ++inserted_;
            if (++slot_ == window_) slot_ = 0;
        }
        return batch.rows;
    }

    std::int64_t probe(const Batch& batch, std::int64_t from, Results<Cell>& out) {
        for (std::int64_t row = from; row < batch.rows; ++row) {
            const std::int64_t place = entries_.place_of(batch.key[row]);
            const Ring& ring = entries_[place].ring;
            if (!out.has_room(ring.count)) return row;
            std::fill_n(out.tick + out.made, ring.count, static_cast<std::int32_t>(row));
            rings_.copy(place, ring, out.cells + out.made);
            out.made += ring.count;
        }
        return batch.rows;
    }

    std::int64_t window_, inserted_ = 0, slot_ = 0;
    Table<Entry> entries_;
    Runs<Cell> rings_;
    std::vector<std::int32_t> places_;  // by slot: where its key's entry is
    std::vector<std::int64_t> values_;  // by slot
};

}  // namespace

YARDSTICK(RingIndex)

extern "C" std::int64_t value_of(void* self, std::int64_t slot) { return static_cast<RingIndex*>(self)->value(slot); }
