// Ids of numbers (cqels_py/dictionary/layout.py), and of the exact averages of integers (cqels_py/kernels/decimals.py).
#pragma once

#include <cmath>
#include <cstring>

#include "../yardstick.hpp"

namespace yardstick {

constexpr std::int64_t integer_tag = 5, decimal_tag = 6;
constexpr int tag_shift = 60;
constexpr std::int64_t value_mask = (std::int64_t{1} << value_bits) - 1;

// The value of an xsd:integer, signed.
inline std::int64_t integer(std::int64_t id) {
    if (id >> value_bits != integer_tag << (tag_shift - value_bits)) throw std::domain_error("not an integer");
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(id) << (64 - value_bits)) >> (64 - value_bits);
}
inline std::int64_t integer_id(std::int64_t value) { return integer_tag << tag_shift | (value & value_mask); }
inline std::int64_t decimal_id(std::int64_t unscaled, std::int64_t scale) {
    return decimal_tag << tag_shift | scale << value_bits | (unscaled & value_mask);
}

constexpr int quotient_digits = 16, most_scale = 15, most_tried = 36;
constexpr std::int64_t most_magnitude = 50;
constexpr std::int64_t limit = std::int64_t{1} << 62;
constexpr std::int64_t powers[] = {
    1,
    10,
    100,
    1'000,
    10'000,
    100'000,
    1'000'000,
    10'000'000,
    100'000'000,
    1'000'000'000,
    10'000'000'000,
    100'000'000'000,
    1'000'000'000'000,
    10'000'000'000'000,
    100'000'000'000'000,
    1'000'000'000'000'000,
    10'000'000'000'000'000,
};

// total / count: sixteen significant digits, never left of the units, half to even, without trailing zeros.
[[gnu::noinline]] inline std::int64_t average_id_by_digits(std::int64_t total, std::int64_t count) {
    const bool negative = total < 0;
    const std::uint64_t size = negative ? -static_cast<std::uint64_t>(total) : static_cast<std::uint64_t>(total);
    const std::uint64_t divisor = static_cast<std::uint64_t>(count);
    std::uint64_t quotient = size / divisor, rest = size % divisor;
    std::int64_t scale = 0;
    for (; rest != 0 && scale < most_tried && quotient < powers[quotient_digits - 1]; ++scale) {
        quotient = 10 * quotient + 10 * rest / divisor;
        rest = 10 * rest % divisor;
    }
    quotient += 2 * rest > divisor || (2 * rest == divisor && quotient % 2 == 1);
    for (; scale > 0 && quotient % 10 == 0; --scale) quotient /= 10;
    if (scale > most_scale || quotient >= std::uint64_t{1} << (value_bits - 1))
        throw std::domain_error("an average without an id of its own");
    const std::int64_t unscaled = static_cast<std::int64_t>(quotient);
    return decimal_id(negative ? -unscaled : unscaled, scale);
}

// 1 / 5**digits modulo 2**64: multiplied by it, a multiple of 10**digits comes out small after `digits` turns to the right, and
// nothing else does (Granlund and Montgomery 1994).
constexpr std::uint64_t inverse(int digits) {
    std::uint64_t found = 1;
    for (int i = 0; i < digits; ++i) found *= 0xCCCCCCCCCCCCCCCDu;
    return found;
}
template <int digits>
std::uint64_t divided(std::uint64_t number) {
    const std::uint64_t product = number * inverse(digits);
    return product >> digits | product << (64 - digits);
}

// A decimal up to 10**16 without `zeros` fraction digits, if it has as many and all of them are zero.
template <int zeros>
void trim(std::uint64_t& unscaled, std::int64_t& scale) {
    const std::uint64_t quotient = divided<zeros>(unscaled);
    const bool exact = (quotient <= static_cast<std::uint64_t>(powers[quotient_digits - zeros])) & (scale >= zeros);
    unscaled = exact ? quotient : unscaled;
    scale -= exact ? zeros : 0;
}

// Of what is not used it may be too large.
inline std::uint64_t product(std::int64_t a, std::int64_t b) { return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b); }

// The same without jumps, so that several are made at once: floating numbers come near, integers say how near. 0 where that does
// not lead there.
inline std::int64_t average_id(std::int64_t total, std::int64_t count) {
    const std::int64_t size = total < 0 ? -total : total;
    const double reciprocal = (1.0 + 0x1p-51) / static_cast<double>(count);
    const double near = static_cast<double>(size) * reciprocal;
    const std::int64_t magnitude = (__builtin_bit_cast(std::int64_t, near) >> 52) - 1023;
    bool ok = (magnitude >= 0) & (magnitude < most_magnitude);
    const std::int64_t whole = static_cast<std::int64_t>(std::min(0x1p50, near));
    // As many more digits as make sixteen: by powers of two, and one less from the next power of ten on.
    std::int64_t scale = quotient_digits - 1 - (std::clamp(magnitude, std::int64_t{0}, most_magnitude - 1) * 1233 >> 12);
    std::int64_t power = powers[scale];
    const bool fewer = product(whole, power) >= static_cast<std::uint64_t>(powers[quotient_digits]);
    power = fewer ? static_cast<std::int64_t>(divided<1>(static_cast<std::uint64_t>(power))) : power;
    scale -= fewer;
    std::int64_t rest = size - whole * count;
    ok &= (rest >= 0) & (rest < count);
    ok &= static_cast<double>(count) * static_cast<double>(power) < static_cast<double>(limit);
    rest = (rest & -std::int64_t{ok}) * power;
    std::int64_t more = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(rest) * reciprocal));
    const std::int64_t twice = 2 * (rest - more * count);
    // Halves between two results are left to the long way.
    ok &= (twice != count) & (twice != -count);
    more += static_cast<std::int64_t>(twice > count) - static_cast<std::int64_t>(twice < -count);
    std::uint64_t unscaled = product(whole, power) + static_cast<std::uint64_t>(more);
    trim<8>(unscaled, scale);
    trim<4>(unscaled, scale);
    trim<2>(unscaled, scale);
    trim<1>(unscaled, scale);
    const std::int64_t plain = static_cast<std::int64_t>(unscaled);
    const std::int64_t id = decimal_id(total < 0 ? -plain : plain, scale);
    return ok ? id : 0;
}

// Of n totals and counts; whatever for those whose count is 0.
inline void average_ids(
    const std::int64_t* __restrict totals, const std::int64_t* __restrict counts, std::int64_t n, std::int64_t* __restrict ids) {
    for (std::int64_t i = 0; i < n; ++i) ids[i] = average_id(totals[i], counts[i]);
}

}  // namespace yardstick
