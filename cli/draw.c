/* SPDX-License-Identifier: Apache-2.0 */
#include "draw.h"

#include <math.h>
#include <stddef.h>

#define OCTAVES 4

static const char *const names[SHAPES] = {"disc",    "square", "triangle", "ring",    "cross",
                                          "stripes", "checks", "dots",     "diamond", "crescent"};

const char *shape_name(int32_t shape)
{
    return names[shape % SHAPES];
}

uint64_t draw_next(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* Uniform in low .. high. */
static double uniform(uint64_t *state, double low, double high)
{
    return low + (high - low) * (double)(draw_next(state) >> 11) / 9007199254740992.0;
}

/* Whether the point (u, v), the shape's size being 1, lies in it. */
static int inside(int32_t shape, double u, double v)
{
    double r = u * u + v * v, a = fabs(u), b = fabs(v);
    double most = a > b ? a : b, least = a > b ? b : a;

    switch (shape) {
    case 0:
        return r < 1.0;
    case 1:
        return most < 0.85;
    case 2:
        return v > -0.8 && v < 1.0 - 2.0 * a;
    case 3:
        return r < 1.0 && r > 0.4;
    case 4:
        return least < 0.28 && most < 1.0;
    case 5:
        return most < 0.95 && ((int)floor((u + 1.0) * 4.0) & 1) == 0;
    case 6:
        return most < 0.95 && (((int)floor((u + 1.0) * 2.5) + (int)floor((v + 1.0) * 2.5)) & 1) == 0;
    case 7: {
        double x = (u + 1.0) * 2.0, y = (v + 1.0) * 2.0;

        x -= floor(x) + 0.5;
        y -= floor(y) + 0.5;
        return most < 1.0 && x * x + y * y < 0.11;
    }
    case 8:
        return a * 0.7 + b < 0.9 && a + b * 0.2 < 1.0;
    default:
        return r < 1.0 && (u - 0.55) * (u - 0.55) + v * v > 0.8;
    }
}

/* A colour of the circle at `hue` (0..1), from gray to full by `strength`, of brightness `value`; 0..255 each. */
static void colour_of(double hue, double strength, double value, double out[3])
{
    static const double shift[3] = {0.0, 2.0 / 3.0, 1.0 / 3.0};

    for (int c = 0; c < 3; c++) {
        double h = hue + shift[c];
        double t = fabs((h - floor(h)) * 6.0 - 3.0) - 1.0;

        t = t < 0.0 ? 0.0 : t > 1.0 ? 1.0 : t;
        out[c] = 255.0 * value * (1.0 - strength + strength * t);
    }
}

/* A value 0..1 of the lattice point (x, y) of one octave. */
static double lattice(uint64_t key, int32_t x, int32_t y)
{
    uint64_t state = key ^ (uint64_t)(uint32_t)x << 32 ^ (uint32_t)y;

    return (double)(draw_next(&state) >> 40) / 16777216.0;
}

/* Adds one octave of smooth noise to a row. */
static void add_octave(double *row, int32_t width, int32_t y, double cell, double weight, uint64_t key)
{
    double fy = y / cell;
    int32_t iy = (int32_t)fy;
    double t = fy - iy;
    double left = 0, right = 0;
    int32_t known = -1;

    t = t * t * (3.0 - 2.0 * t);
    for (int32_t x = 0; x < width; x++) {
        double fx = x / cell;
        int32_t ix = (int32_t)fx;
        double s = fx - ix;

        if (ix != known) {
            left = lattice(key, ix, iy) * (1.0 - t) + lattice(key, ix, iy + 1) * t;
            right = lattice(key, ix + 1, iy) * (1.0 - t) + lattice(key, ix + 1, iy + 1) * t;
            known = ix;
        }
        s = s * s * (3.0 - 2.0 * s);
        row[x] += weight * (left + (right - left) * s);
    }
}

static uint8_t to_byte(double value)
{
    return (uint8_t)(value < 0.0 ? 0.0 : value > 255.0 ? 255.0 : value + 0.5);
}

/* Hue, saturation and value between `low` and `high`. One draw a statement: a call's arguments are evaluated in an order
 * that each compiler chooses for itself, and the same options give the same picture everywhere. */
static void any_colour(uint64_t *state, const double low[3], const double high[3], double colour[3])
{
    double hue = uniform(state, low[0], high[0]);
    double saturation = uniform(state, low[1], high[1]);
    double value = uniform(state, low[2], high[2]);

    colour_of(hue, saturation, value, colour);
}

void draw_picture(uint8_t *rgb, int32_t width, int32_t height, int32_t shape, int32_t hue, int32_t hues,
                  uint64_t *state)
{
    double shorter = width < height ? width : height;
    double size = shorter * uniform(state, 0.24, 0.42);
    double middle_x = width * 0.5 + (width - 1.6 * size) * uniform(state, -0.4, 0.4);
    double middle_y = height * 0.5 + (height - 1.6 * size) * uniform(state, -0.4, 0.4);
    double cosine = uniform(state, 0.8, 1.0), sine = uniform(state, -0.5, 0.5);
    double length = sqrt(cosine * cosine + sine * sine);
    double grain = uniform(state, 6.0, 22.0), light = uniform(state, -40.0, 40.0), slope = uniform(state, -50.0, 50.0);
    double ground[2][3], figure[3];
    double row[16384]; /* the widest picture that --size takes */
    uint64_t keys[OCTAVES + 1];

    shape %= SHAPES;
    any_colour(state, (const double[3]){0.0, 0.1, 0.15}, (const double[3]){1.0, 0.7, 0.55}, ground[0]);
    any_colour(state, (const double[3]){0.0, 0.1, 0.4}, (const double[3]){1.0, 0.7, 0.8}, ground[1]);
    any_colour(state, (const double[3]){(hue + 0.1) / hues, 0.5, 0.75}, (const double[3]){(hue + 0.9) / hues, 1.0, 1.0},
               figure);
    for (int i = 0; i <= OCTAVES; i++)
        keys[i] = draw_next(state);
    for (int32_t y = 0; y < height; y++) {
        for (int32_t x = 0; x < width; x++)
            row[x] = 0.0;
        for (int i = 0; i < OCTAVES; i++) {
            double cell = shorter / (double)(3 << (2 * i));

            add_octave(row, width, y, cell < 1.0 ? 1.0 : cell, 0.5 / (double)(1 << i), keys[i]);
        }
        for (int32_t x = 0; x < width; x++) {
            double u = (x - middle_x) / size, v = (y - middle_y) / size;
            double turned_u = (u * cosine + v * sine) / length, turned_v = (v * cosine - u * sine) / length;
            int figure_here = inside(shape, turned_u, turned_v);
            uint64_t noise = draw_next(&keys[OCTAVES]);
            uint8_t *pixel = rgb + ((size_t)y * (size_t)width + (size_t)x) * 3;

            for (int c = 0; c < 3; c++) {
                double cloud = ground[0][c] + (ground[1][c] - ground[0][c]) * row[x];
                double value = figure_here ? figure[c] * (0.75 + 0.4 * row[x]) : cloud;
                double speck = ((double)(noise >> (16 * c) & 0xFFFF) / 65536.0 - 0.5) * grain;

                pixel[c] = to_byte(value + light + slope * (y - height * 0.5) / height + speck);
            }
        }
    }
}
