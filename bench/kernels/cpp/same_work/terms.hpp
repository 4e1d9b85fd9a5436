// Ids of numbers (cqels_py/dictionary/layout.py), and of the averages of integers: exact (cqels_py/kernels/decimals.py), or rounded
// fractions (cqels_py/kernels/quotients.py).
#pragma once

#include <cmath>
#include <cstring>
#include <numeric>

#include "../yardstick.hpp"

namespace yardstick {

constexpr std::int64_t integer_tag = 5, decimal_tag = 6, fraction_tag = 13;
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

constexpr int dividend_bits = 40, surely_long = 200;
inline std::int64_t fraction_id(std::int64_t dividend, std::int64_t divisor, std::int64_t scale) {
    constexpr std::int64_t mask = (std::int64_t{1} << dividend_bits) - 1;
    return (fraction_tag - 16) * (std::int64_t{1} << tag_shift) | scale << value_bits | divisor << dividend_bits | (dividend & mask);
}

constexpr int quotient_digits = 16, most_scale = 15;
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

// A divisor without factors 2 and 5, and the power of ten and the factor that take their place.
struct Parts {
    std::int64_t divisor = 1, scale = 0, factor = 1;
    constexpr explicit Parts(std::int64_t of = 1) : divisor(of) {
        std::int64_t fives = 0;
        for (; divisor % 2 == 0; divisor /= 2) ++scale;
        for (; divisor % 5 == 0; divisor /= 5) ++fives;
        for (std::int64_t more = fives; more < scale; ++more) factor *= 5;
        for (std::int64_t more = scale; more < fives; ++more) factor *= 2;
        scale = std::max(scale, fives);
    }
};

// total / count where that has at most 16 digits, or is a fraction that is surely rounded to 18 digits or more.
[[gnu::noinline]] inline std::int64_t average_id_by_digits(std::int64_t total, std::int64_t count) {
    const std::int64_t common = std::gcd(total, count);
    const Parts parts(count / common);
    std::int64_t dividend;
    if (__builtin_mul_overflow(total / common, parts.factor, &dividend)) throw std::domain_error("an average without an id of its own");
    if (parts.divisor == 1) {
        if (parts.scale > most_scale || std::abs(dividend) >= std::int64_t{1} << (value_bits - 1))
            throw std::domain_error("an average without an id of its own");
        return decimal_id(dividend, parts.scale);
    }
    std::int64_t scale = parts.scale;
    for (; scale > 0 && dividend % 10 == 0; --scale) dividend /= 10;
    const double size = static_cast<double>(std::abs(dividend)), divisor = static_cast<double>(parts.divisor);
    const bool fits = size < 0x1p39 && scale <= most_scale && size * divisor * static_cast<double>(powers[scale]) < 1e17;
    if (!fits || parts.divisor >= surely_long || std::abs(total) < count)
        throw std::domain_error("an average without an id of its own");
    return fraction_id(dividend, parts.divisor, scale);
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
    const std::int64_t more = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(rest) * reciprocal));
    ok &= rest == more * count;
    std::uint64_t unscaled = product(whole, power) + static_cast<std::uint64_t>(more);
    trim<8>(unscaled, scale);
    trim<4>(unscaled, scale);
    trim<2>(unscaled, scale);
    trim<1>(unscaled, scale);
    const std::int64_t plain = static_cast<std::int64_t>(unscaled);
    const std::int64_t id = decimal_id(total < 0 ? -plain : plain, scale);
    return ok ? id : 0;
}

// Of the greatest common divisors of two integers below that, and the parts of these.
struct ShortFractions {
    std::uint8_t common[surely_long * surely_long] = {};
    std::int64_t divisor[surely_long] = {}, scale[surely_long] = {};
    double factor[surely_long] = {};
    ShortFractions() {
        for (int a = 0; a < surely_long; ++a) {
            for (int b = 0; b < surely_long; ++b) common[a * surely_long + b] = static_cast<std::uint8_t>(std::gcd(a, b));
            const Parts parts(std::max(a, 1));
            divisor[a] = parts.divisor, scale[a] = parts.scale, factor[a] = static_cast<double>(parts.factor);
        }
    }
};
inline const ShortFractions short_fractions;

// The same of an average that does not end, of a small count.
inline std::int64_t short_fraction_id(std::int64_t total, std::int64_t count) {
    const double size = static_cast<double>(total < 0 ? -total : total), by = static_cast<double>(count);
    const double near = std::trunc(size * ((1.0 + 0x1p-51) / by)), rest = size - near * by;
    bool ok = (size < 0x1p39) & (by < surely_long) & (rest >= 0.0) & (rest < by) & (near >= 1.0);
    const double common = short_fractions.common[static_cast<std::int64_t>(ok ? by * surely_long + rest : surely_long)];
    const std::int64_t parts = static_cast<std::int64_t>(ok ? by / common : 1.0);
    const std::int64_t divisor = short_fractions.divisor[parts], scale = short_fractions.scale[parts];
    const double dividend = size / common * short_fractions.factor[parts];
    ok &= (divisor > 1) & (dividend < 0x1p33);
    const std::int64_t whole = static_cast<std::int64_t>(ok ? dividend : 0.0);
    return ok ? fraction_id(total < 0 ? -whole : whole, divisor, scale) : 0;
}

// Of n totals and counts; whatever for those whose count is 0.
inline void average_ids(
    const std::int64_t* __restrict totals, const std::int64_t* __restrict counts, std::int64_t n, std::int64_t* __restrict ids) {
    for (std::int64_t i = 0; i < n; ++i) ids[i] = average_id(totals[i], counts[i]);
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t fraction = short_fraction_id(totals[i], std::max(counts[i], std::int64_t{1}));
        ids[i] = ids[i] == 0 ? fraction : ids[i];
    }
}

}  // namespace yardstick
