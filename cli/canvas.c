/* SPDX-License-Identifier: Apache-2.0 */
#include "canvas.h"

#include <stdlib.h>
#include <string.h>

bool canvas_make(canvas *c, int32_t width, int32_t height, colour fill)
{
    c->width = width;
    c->height = height;
    c->rgb = malloc((size_t)width * (size_t)height * 3);
    if (c->rgb == NULL)
        return false;
    canvas_rectangle(c, 0, 0, width, height, fill);
    return true;
}

void canvas_free(canvas *c)
{
    free(c->rgb);
    c->rgb = NULL;
}

void canvas_rectangle(canvas *c, int32_t left, int32_t top, int32_t width, int32_t height, colour fill)
{
    int32_t right = left + width < c->width ? left + width : c->width;
    int32_t bottom = top + height < c->height ? top + height : c->height;

    for (int32_t y = top < 0 ? 0 : top; y < bottom; y++) {
        for (int32_t x = left < 0 ? 0 : left; x < right; x++) {
            uint8_t *pixel = c->rgb + ((size_t)y * (size_t)c->width + (size_t)x) * 3;

            pixel[0] = fill.r;
            pixel[1] = fill.g;
            pixel[2] = fill.b;
        }
    }
}

void canvas_image(canvas *c, int32_t left, int32_t top, const uint8_t *pixels, int32_t width, int32_t height,
                  int32_t channels, int32_t scale)
{
    for (int32_t y = 0; y < height; y++) {
        for (int32_t x = 0; x < width; x++, pixels += channels) {
            colour ink = {pixels[0], pixels[channels == 3 ? 1 : 0], pixels[channels == 3 ? 2 : 0]};

            canvas_rectangle(c, left + x * scale, top + y * scale, scale, scale, ink);
        }
    }
}

static void draw_character(canvas *c, int32_t left, int32_t top, char character, int32_t scale, colour ink)
{
    const uint8_t *rows = font_rows(character);

    for (int32_t y = 0; y < CHARACTER_HEIGHT; y++) {
        for (int32_t x = 0; x < 5; x++) {
            if (rows[y] >> (4 - x) & 1)
                canvas_rectangle(c, left + x * scale, top + y * scale, scale, scale, ink);
        }
    }
}

void canvas_text(canvas *c, int32_t left, int32_t top, const char *text, int32_t room, int32_t scale, colour ink)
{
    int32_t fit = room / (CHARACTER_WIDTH * scale), length = 0;
    const char *at = text;

    for (const char *p = text; *p != '\0'; p++)
        length += ((unsigned char)*p & 0xC0) != 0x80;
    for (int32_t i = 0; i < fit && *at != '\0'; i++) {
        char character = *at++;

        while (((unsigned char)*at & 0xC0) == 0x80)
            at++;
        if (length > fit && i >= fit - 3)
            character = '.';
        draw_character(c, left + i * CHARACTER_WIDTH * scale, top, character, scale, ink);
    }
}
