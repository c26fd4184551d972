// The update rules of optimizers, element by element: each changes its slots and gives what is
// subtracted from the weight. `k` holds the numbers that `constants` of the class of the same name
// in gtape/keras/optimizers gives, in their order; formulas and sources stand there.
#pragma once
#include "gtape.cuh"

DEVICE float absolute(float x) { return fabsf(x); }
DEVICE double absolute(double x) { return fabs(x); }
DEVICE float root(float x) { return sqrtf(x); }
DEVICE double root(double x) { return sqrt(x); }

// k: rate.
struct SGD {
    static constexpr int slots = 0;
    template <typename A> static DEVICE A step(const A* k, A g, A*) { return g * k[0]; }
};

// k: rate, momentum. s: momentum.
template <bool NESTEROV> struct MomentumSGD {
    static constexpr int slots = 1;
    template <typename A> static DEVICE A step(const A* k, A g, A* s) {
        A descent = g * k[0];
        s[0] = s[0] * k[1] - descent;
        return NESTEROV ? descent - s[0] * k[1] : -s[0];
    }
};

// k: rate, beta_1, 1 - beta_1, beta_2, 1 - beta_2. s: momentum.
struct Lion {
    static constexpr int slots = 1;
    template <typename A> static DEVICE A step(const A* k, A g, A* s) {
        A mixed = s[0] * k[1] + g * k[2];
        s[0] = s[0] * k[3] + g * k[4];
        A sign = mixed > A(0) ? A(1) : mixed < A(0) ? A(-1) : mixed;
        return sign * k[0];
    }
};

template <typename A> DEVICE void moments(A g, A* s, A c1, A c2) {
    s[0] += (g - s[0]) * c1;
    s[1] += (g * g - s[1]) * c2;
}

// k: alpha, 1 - beta_1, 1 - beta_2, epsilon. s: momentum, velocity, with AMSGRAD the largest
// velocity.
template <bool AMSGRAD> struct Adam {
    static constexpr int slots = AMSGRAD ? 3 : 2;
    template <typename A> static DEVICE A step(const A* k, A g, A* s) {
        moments(g, s, k[1], k[2]);
        A v = s[1];
        if constexpr (AMSGRAD) v = s[2] = Max::combine(s[2], v);
        return s[0] * k[0] / (root(v) + k[3]);
    }
};

// k: rate, 1 - beta_1^t, 1 - beta_1, beta_2, epsilon. s: momentum, norm.
struct Adamax {
    static constexpr int slots = 2;
    template <typename A> static DEVICE A step(const A* k, A g, A* s) {
        s[0] += (g - s[0]) * k[2];
        s[1] = Max::combine(s[1] * k[3], absolute(g));
        return s[0] * k[0] / ((s[1] + k[4]) * k[1]);
    }
};

// k: rate, 1 - beta_1, 1 - beta_2, epsilon, the shares of mean and gradient, 1 - beta_2^t.
// s: momentum, velocity.
struct Nadam {
    static constexpr int slots = 2;
    template <typename A> static DEVICE A step(const A* k, A g, A* s) {
        moments(g, s, k[1], k[2]);
        return (s[0] * k[4] + g * k[5]) * k[0] / (root(s[1] / k[6]) + k[3]);
    }
};

// k: rate, epsilon. s: accumulator.
struct Adagrad {
    static constexpr int slots = 1;
    template <typename A> static DEVICE A step(const A* k, A g, A* s) {
        s[0] += g * g;
        return g * k[0] / root(s[0] + k[1]);
    }
};

// k: rate, rho, 1 - rho, epsilon, momentum. s: velocity, with MOMENTUM the momentum, with CENTERED
// the mean gradient.
template <bool MOMENTUM, bool CENTERED> struct RMSprop {
    static constexpr int slots = 1 + MOMENTUM + CENTERED;
    template <typename A> static DEVICE A step(const A* k, A g, A* s) {
        s[0] = s[0] * k[1] + g * g * k[2];
        A spread = s[0];
        if constexpr (CENTERED) {
            A mean = s[slots - 1] = s[slots - 1] * k[1] + g * k[2];
            spread -= mean * mean;
        }
        A descent = g * k[0] / root(spread + k[3]);
        if constexpr (MOMENTUM) descent = s[1] = s[1] * k[4] + descent;
        return descent;
    }
};

// k: rate, rho, 1 - rho, epsilon. s: means of past squares of gradients and of steps.
struct Adadelta {
    static constexpr int slots = 2;
    template <typename A> static DEVICE A step(const A* k, A g, A* s) {
        s[0] = s[0] * k[1] + g * g * k[2];
        A change = g * root(s[1] + k[3]) / root(s[0] + k[3]);
        s[1] = s[1] * k[1] + change * change * k[2];
        return change * k[0];
    }
};
