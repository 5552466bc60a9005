/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"

#include <errno.h>
#include <sys/random.h>

#include "base/assert.h"

void kr_rand_secret(void *out, size_t n)
{
    uint8_t *p = out;

    while (n != 0) {
        ssize_t got = getrandom(p, n, 0);

        KR_ASSERT(got > 0 || errno == EINTR);
        if (got > 0) {
            p += got;
            n -= (size_t)got;
        }
    }
}

/* splitmix64 spreads a seed over the state: four different words, never all zero. */
static uint64_t spread(uint64_t *x)
{
    uint64_t z = *x += 0x9E3779B97F4A7C15U;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

void kr_rand_seed(struct kr_rand *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = spread(&seed);
}

void kr_rand_init(struct kr_rand *r)
{
    uint64_t seed;

    kr_rand_secret(&seed, sizeof seed);
    kr_rand_seed(r, seed);
}

static uint64_t rotate_left(uint64_t x, unsigned k)
{
    return x << k | x >> (64 - k);
}

uint64_t kr_rand_u64(struct kr_rand *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t kr_rand_below(struct kr_rand *r, uint64_t n)
{
    uint64_t biased; /* how many values at the low end would come once too often */
    uint64_t x;

    if (n == 0)
        return 0;
    biased = -n % n;
    do
        x = kr_rand_u64(r);
    while (x < biased);
    return x % n;
}

int64_t kr_rand_ms(struct kr_rand *r, int64_t lo_ms, int64_t hi_ms)
{
    if (hi_ms <= lo_ms)
        return lo_ms;
    return lo_ms + (int64_t)kr_rand_below(r, (uint64_t)(hi_ms - lo_ms) + 1);
}
