/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webp.c: WebP files → RGB, through libwebp.
 *
 * Pillow asks libwebp's animation decoder for the first frame, drawn on a transparent black canvas, and then drops the
 * alpha. For a first frame that comes to the same as decoding it alone, straight to RGB, into its place on a black
 * image; so that is done here, over the same demultiplexer, which is what decides whether a file is sound.
 */
#include <stdio.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

#include "image/codec.h"
#include "image/exif.h"

typedef struct webp {
    WebPDemuxer *demuxer;  /* of the file begun, or NULL */
    int32_t width, height; /* of the canvas */
    sk_buffer image;
    bool upright; /* whether the orientation is asked for */
} webp;
/* What Pillow takes for a WebP file at all, beyond the magic that sniff.c looks at. */
static bool known_kind(const uint8_t *data, size_t size)
{
    return size >= 16 && (memcmp(data + 12, "VP8 ", 4) == 0 || memcmp(data + 12, "VP8X", 4) == 0 ||
                          memcmp(data + 12, "VP8L", 4) == 0);
}

static stoker_status open_file(webp *w, const uint8_t *data, size_t size)
{
    WebPData file = {data, size};
    WebPBitstreamFeatures features;

    WebPDemuxDelete(w->demuxer);
    w->demuxer = NULL;
    /* The animation decoder asks both, and either may refuse. */
    if (known_kind(data, size) && WebPGetFeatures(data, size, &features) == VP8_STATUS_OK)
        w->demuxer = WebPDemux(&file);
    if (w->demuxer == NULL)
        return sk_fail(STOKER_ERR_DATA, "broken or truncated WebP: its parts do not add up");
    w->width = (int32_t)WebPDemuxGetI(w->demuxer, WEBP_FF_CANVAS_WIDTH);
    w->height = (int32_t)WebPDemuxGetI(w->demuxer, WEBP_FF_CANVAS_HEIGHT);
    if (w->width < 1 || w->height < 1)
        return sk_fail(STOKER_ERR_DATA, "broken WebP: size %d x %d", w->width, w->height);
    return STOKER_OK;
}

/* The decoder's words for its refusals. */
static const char *reason(VP8StatusCode code)
{
    switch (code) {
    case VP8_STATUS_BITSTREAM_ERROR:
        return "its data are broken";
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
        return "its data end early";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return "it uses a feature that the decoder does not know";
    default:
        return "the decoder refuses it";
    }
}

static stoker_status read_image(webp *w)
{
    WebPIterator frame;
    WebPDecoderConfig config;
    size_t stride = (size_t)w->width * 3;
    size_t size;

    if (!sk_multiply(stride, (size_t)w->height, &size))
        return sk_fail(STOKER_ERR_LIMIT, "image of %d x %d pixels is too large", w->width, w->height);
    if (!WebPInitDecoderConfig(&config))
        return sk_fail(STOKER_ERR_UNSUPPORTED, "libwebp is of another version than its header");
    if (!WebPDemuxGetFrame(w->demuxer, 1, &frame))
        return sk_fail(STOKER_ERR_DATA, "broken WebP: it holds no image");
    stoker_status status = sk_buffer_reserve(&w->image, size);

    if (status != STOKER_OK)
        goto done;
    if (frame.x_offset < 0 || frame.y_offset < 0 || frame.width < 1 || frame.height < 1 ||
        frame.x_offset > w->width - frame.width || frame.y_offset > w->height - frame.height) {
        status = sk_fail(STOKER_ERR_DATA, "broken WebP: its first frame lies outside the image");
        goto done;
    }
    if (frame.width != w->width || frame.height != w->height)
        memset(w->image.data, 0, size);
    size_t offset = (size_t)frame.y_offset * stride + (size_t)frame.x_offset * 3;

    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = w->image.data + offset;
    config.output.u.RGBA.stride = (int)stride;
    config.output.u.RGBA.size = size - offset;
    VP8StatusCode code = WebPDecode(frame.fragment.bytes, frame.fragment.size, &config);

    if (code == VP8_STATUS_OUT_OF_MEMORY)
        status = sk_fail(STOKER_ERR_MEMORY, "out of memory: the WebP decoder");
    else if (code != VP8_STATUS_OK)
        status = sk_fail(STOKER_ERR_DATA, "broken WebP: %s", reason(code));
    WebPFreeDecBuffer(&config.output);
done:
    WebPDemuxReleaseIterator(&frame);
    return status;
}

static void *webp_create(const stoker_image_settings *settings)
{
    webp *w = sk_calloc(1, sizeof *w);

    if (w != NULL)
        w->upright = settings->exif_orientation != 0;
    return w;
}

static void webp_destroy(void *self)
{
    webp *w = self;

    if (w == NULL)
        return;
    WebPDemuxDelete(w->demuxer);
    sk_buffer_free(&w->image);
    sk_free(w);
}

static stoker_status find_orientation(const webp *w, int *orientation)
{
    WebPChunkIterator part;
    bool found = false;
    stoker_status status = STOKER_OK;

    if (WebPDemuxGetChunk(w->demuxer, "EXIF", 1, &part)) {
        status = sk_exif_orientation(part.chunk.bytes, part.chunk.size, 2, orientation, &found);
        WebPDemuxReleaseChunkIterator(&part);
    }
    if (status == STOKER_OK && !found && WebPDemuxGetChunk(w->demuxer, "XMP ", 1, &part)) {
        *orientation = sk_xmp_orientation(part.chunk.bytes, part.chunk.size);
        WebPDemuxReleaseChunkIterator(&part);
    }
    return status;
}

static stoker_status webp_open(void *self, const uint8_t *data, size_t size, sk_header *header)
{
    webp *w = self;
    stoker_status status = open_file(w, data, size);

    if (status != STOKER_OK)
        return status;
    header->width = w->width;
    header->height = w->height;
    return w->upright ? find_orientation(w, &header->orientation) : STOKER_OK;
}

static stoker_status webp_pixels(void *self, const sk_rect *region, sk_pixels *out, char *warning)
{
    webp *w = self;
    stoker_status status = read_image(w);

    (void)region; /* libwebp decodes a still image as a whole */
    if (status != STOKER_OK)
        return status;
    if (WebPDemuxGetI(w->demuxer, WEBP_FF_FRAME_COUNT) > 1)
        snprintf(warning, SK_WARNING_SIZE, "animated, the first frame is taken");
    *out = (sk_pixels){w->image.data, (size_t)w->width * 3, 3, w->width, w->height, {0, 0, w->width, w->height}};
    return STOKER_OK;
}

const sk_codec sk_webp_codec = {"webp", webp_create, webp_destroy, webp_open, webp_pixels};
