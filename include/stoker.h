/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stoker.h: the whole public interface of libstoker.
 *
 * Stoker reads an image dataset, decodes, augments and batches it, and hands a training loop its next batch before it
 * asks. The reference for every pixel is Pillow's decoder and torchvision's transforms on PIL images: given the same
 * crop, flip and factors, what Stoker writes is bit-identical, on every instruction set and with any number of threads.
 *
 * The shortest use (examples/feed.c is the whole program):
 *
 *     stoker_dataset *dataset;
 *     stoker_loader *loader;
 *     stoker_batch *batch;
 *     stoker_loader_settings settings;
 *
 *     stoker_dataset_open("photos", NULL, &dataset);
 *     stoker_loader_default_settings(&settings);
 *     settings.ops = "random_resized_crop(224) random_horizontal_flip normalize(imagenet) to(f32,nchw)";
 *     settings.batch = 64;
 *     stoker_loader_open(dataset, &settings, &loader);
 *     while (stoker_loader_next(loader, &batch) == STOKER_OK) {
 *         ...                                // batch->images, batch->labels
 *         stoker_batch_release(batch);
 *     }                                      // STOKER_END: the epoch is over; the next call begins the next one
 *     stoker_loader_close(loader);
 *     stoker_dataset_close(dataset);
 *
 * Conventions
 *   - Every function that can fail returns a stoker_status. On failure its outputs are untouched (or set to NULL where
 *     said) and stoker_last_error() gives one line that names the file, the sample and the reason.
 *   - Handles are opaque. What an `open` returns, the `close` of the same noun takes back; every close takes NULL.
 *   - Strings are NUL-terminated. Paths are bytes as the system has them, and may not be UTF-8.
 *   - Strings and arrays that a function returns belong to the handle they came from and live as long as it does,
 *     unless said otherwise.
 *   - Settings structs are filled by their `default_settings` call first; fields added later take room from `reserved`,
 *     which must stay zero.
 *   - The library never prints, exits, aborts or installs a signal handler.
 *   - Threads: a dataset may be used by any number of threads at once. A loader's calls must come from one thread at a
 *     time (except stoker_loader_stats and stoker_loader_interrupt: any thread). A batch may be released by any thread.
 *   - Fork: a loader made before fork() refuses to work in the child (STOKER_ERR_STATE); it may be closed there.
 */
#ifndef STOKER_H
#define STOKER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STOKER_VERSION_MAJOR 0
#define STOKER_VERSION_MINOR 1
#define STOKER_VERSION_PATCH 0

#if defined(__GNUC__)
#define STOKER_API __attribute__((visibility("default")))
#else
#define STOKER_API
#endif

/* ------------------------------------------------------------------------------------------------ status -------- */

typedef enum stoker_status {
    STOKER_OK = 0,
    STOKER_END = 1,              /* no error: the epoch is over */
    STOKER_ERR_ARGUMENT = -1,    /* a wrong argument or setting: the caller's fault */
    STOKER_ERR_IO = -2,          /* the system refused: no such file, no permission, disk full, read error */
    STOKER_ERR_DATA = -3,        /* broken data: a truncated image, a partial record, a label out of range */
    STOKER_ERR_UNSUPPORTED = -4, /* sound data of a kind that Stoker does not read; the message names the kind */
    STOKER_ERR_MEMORY = -5,      /* an allocation failed */
    STOKER_ERR_LIMIT = -6,       /* a named limit was exceeded; the message says which setting raises it */
    STOKER_ERR_STATE = -7,       /* not now: closed, forked, another call under way */
    STOKER_ERR_STALL = -8,       /* nothing came for settings.stall_seconds; the message names the blocked stage */
    STOKER_ERR_INTERRUPTED = -9, /* stoker_loader_interrupt was called */
    STOKER_ERR_TIMEOUT = -10     /* stoker_loader_next_within waited for so long; asking again goes on waiting */
} stoker_status;

/* The calling thread's last error as one line without a newline; "" if there was none. Valid until the thread's next
 * call into the library. Any thread. */
STOKER_API const char *stoker_last_error(void);

/* "0.1.0". Static. */
STOKER_API const char *stoker_version(void);

/* A status's short name, e.g. "broken data". Static; never NULL. */
STOKER_API const char *stoker_status_name(stoker_status status);

/* The instruction set in use: "scalar", "avx2", "avx512" or "neon". The environment variable STOKER_CPU forces one;
 * one that this processor lacks, or an unknown name, makes every open call fail with STOKER_ERR_ARGUMENT. Each gives the
 * same bits; "neon" has been run under emulation only. Static. */
STOKER_API const char *stoker_cpu(void);

/* The number of cores this process may use: the least of its affinity mask and its cgroup CPU quota (rounded up), at
 * least 1. If `reason` is not NULL it gets a static word: "affinity" or "cgroup". */
STOKER_API int32_t stoker_usable_cores(const char **reason);

/* ------------------------------------------------------------------------------------------------ images -------- */

/* Decoding options and limits, for stoker_image_decode and inside a dataset's settings. */
typedef struct stoker_image_settings {
    int64_t max_pixels;       /* width × height beyond this is refused before memory is taken. Default 178,956,970:
                               * where Pillow raises DecompressionBombError (2 × Image.MAX_IMAGE_PIXELS) */
    int32_t max_scans;        /* of a progressive JPEG; default 500 */
    int32_t exif_orientation; /* 0 (default): leave pixels as stored, as torchvision does; 1: turn them upright as
                               * PIL.ImageOps.exif_transpose does */
    int64_t reserved[6];
} stoker_image_settings;

STOKER_API void stoker_image_default_settings(stoker_image_settings *settings);

/* A decoded image: 8-bit, interleaved, rows tightly packed (stride = width × channels bytes). */
typedef struct stoker_image {
    uint8_t *pixels;    /* height × width × channels bytes, 0..255; freed by stoker_image_free */
    int32_t width;      /* pixels */
    int32_t height;     /* pixels */
    int32_t channels;   /* 3 (RGB) from stoker_image_decode; 1 (gray) for a dataset of gray samples such as MNIST */
    const char *format; /* "jpeg", "png", "webp"; static */
    char warning[256];  /* what the decoder noticed and Pillow passes over ("" if nothing) */
} stoker_image;

/* Decodes a whole image file held in memory, by its content, into what PIL.Image.open(f).convert("RGB") gives.
 * `settings` may be NULL. Errors: STOKER_ERR_DATA where Pillow raises, STOKER_ERR_UNSUPPORTED naming the format (GIF,
 * TIFF, BMP …), STOKER_ERR_LIMIT. */
STOKER_API stoker_status stoker_image_decode(const void *data, size_t size, const stoker_image_settings *settings,
                                             stoker_image *out);

/* As above, but only the rectangle left .. left+width, top .. top+height, which must lie inside the image; equal to
 * cutting it out of the whole decode. */
STOKER_API stoker_status stoker_image_decode_region(const void *data, size_t size, int32_t left, int32_t top,
                                                    int32_t width, int32_t height,
                                                    const stoker_image_settings *settings, stoker_image *out);

/* Frees `image->pixels` and sets it to NULL. Takes NULL. */
STOKER_API void stoker_image_free(stoker_image *image);

/* Writes an RGB image (height × width × 3, rows tightly packed) as a PNG file, to a temporary name first and then
 * renamed, so that no half-written file is left. STOKER_ERR_IO names the path and the reason. */
STOKER_API stoker_status stoker_png_write(const char *path, const uint8_t *rgb, int32_t width, int32_t height);

/* The same as a baseline JPEG file, quality 1..100, 4:2:0 if `subsample` is not 0 and 4:4:4 otherwise. */
STOKER_API stoker_status stoker_jpeg_write(const char *path, const uint8_t *rgb, int32_t width, int32_t height,
                                           int32_t quality, int32_t subsample);

/* ----------------------------------------------------------------------------------------------- dataset -------- */

typedef struct stoker_dataset stoker_dataset;

typedef enum stoker_split {
    STOKER_SPLIT_DEFAULT = 0, /* train where the dataset tells parts apart and has a training part, else all */
    STOKER_SPLIT_TRAIN = 1,
    STOKER_SPLIT_TEST = 2,
    STOKER_SPLIT_ALL = 3 /* training samples first, then test samples */
} stoker_split;

/*
 * Whether the list of an ImageFolder's files is kept, so that the next open need not list them again. The index lies in
 * $XDG_CACHE_HOME/stoker/index or ~/.cache/stoker/index. It is used only while every folder of the dataset is the same and has
 * the same times of change; docs/datasets.md says what that sees. A damaged or outdated index, or no place for one, is never
 * an error.
 */
typedef enum stoker_index {
    STOKER_INDEX_AUTO =
        0, /* kept from 5,000 files on; or as the environment variable STOKER_INDEX (auto, off, keep, rebuild)
                              * says */
    STOKER_INDEX_OFF = 1,    /* neither read nor written */
    STOKER_INDEX_KEEP = 2,   /* kept, however few the files */
    STOKER_INDEX_REBUILD = 3 /* not read; written anew */
} stoker_index;

typedef struct stoker_dataset_settings {
    int32_t split;               /* stoker_split */
    int32_t coarse_labels;       /* CIFAR-100: 0 (default) fine labels, 1 coarse labels */
    stoker_image_settings image; /* how samples are decoded */
    int32_t index;               /* stoker_index, of an ImageFolder; others take no notice */
    int32_t reserved0;
    int64_t reserved[5];
} stoker_dataset_settings;

STOKER_API void stoker_dataset_default_settings(stoker_dataset_settings *settings);

/*
 * Opens what lies at `path`, told by looking at it:
 *   "imagefolder"   a folder of class folders, as torchvision.datasets.ImageFolder means it: classes sorted by name (byte
 *                   order) give labels 0, 1, …; files at any depth, symbolic links followed, extensions .jpg .jpeg .png
 *                   .ppm .bmp .pgm .tif .tiff .webp in any case, files sorted as torchvision sorts them; a class folder
 *                   without images is an error
 *   "cifar10", "cifar100"   the binary layout (.bin; a folder or one file) or the Python-pickle layout (data_batch_1 …,
 *                   train, test), told apart by content; any number of records
 *   "pack"          a file that stoker_pack wrote
 *   "mnist"         idx files, plain or .gz (MNIST, Fashion-MNIST, …; a folder, at most two levels up from the files, or
 *                   one images file, whose labels file is found beside it)
 * `settings` may be NULL. On failure *out is NULL.
 */
STOKER_API stoker_status stoker_dataset_open(const char *path, const stoker_dataset_settings *settings,
                                             stoker_dataset **out);

/*
 * A dataset over samples already in memory, without copying: `images` is count × height × width × channels bytes (NHWC,
 * C contiguous, channels 1 or 3), `labels` count int64 or NULL (then all labels are 0). Both must outlive the dataset and
 * stay unchanged. Its format is "arrays". Labels may be any int64 value; there are no class names.
 */
STOKER_API stoker_status stoker_dataset_from_arrays(const uint8_t *images, int64_t count, int32_t height, int32_t width,
                                                    int32_t channels, const int64_t *labels, stoker_dataset **out);

/* A dataset that reads samples `indices[0..count)` of `base`, in that order; repeats are allowed. Copies the indices.
 * `base` must stay open until the new dataset is closed. */
STOKER_API stoker_status stoker_dataset_subset(const stoker_dataset *base, const int64_t *indices, int64_t count,
                                               stoker_dataset **out);

/* The datasets one after another, as torch.utils.data.ConcatDataset has them. Class names are the first one's; all must
 * have the same number of channels. `parts` must stay open until the new dataset is closed. */
STOKER_API stoker_status stoker_dataset_concat(stoker_dataset *const *parts, int32_t count, stoker_dataset **out);

STOKER_API void stoker_dataset_close(stoker_dataset *dataset);

STOKER_API const char *stoker_dataset_format(const stoker_dataset *dataset);
STOKER_API int64_t stoker_dataset_size(const stoker_dataset *dataset);
STOKER_API int64_t stoker_dataset_split_size(const stoker_dataset *dataset, stoker_split split);
STOKER_API int32_t stoker_dataset_classes(const stoker_dataset *dataset);                       /* 0 if unknown */
STOKER_API const char *stoker_dataset_class_name(const stoker_dataset *dataset, int32_t label); /* NULL if none */
STOKER_API int32_t stoker_dataset_channels(const stoker_dataset *dataset); /* 3, or 1 for gray datasets */

/* The size that all samples share, or 0 × 0 where they may differ. */
STOKER_API void stoker_dataset_sample_size(const stoker_dataset *dataset, int32_t *width, int32_t *height);

/* Label of sample `index`, 0 <= index < size; -1 and no error message outside. */
STOKER_API int64_t stoker_dataset_label(const stoker_dataset *dataset, int64_t index);

/* Writes where sample `index` lies ("photos/n01440764/a.JPEG", "data_batch_1.bin, record 17") into `buffer`, cut to
 * `size` bytes with its NUL; returns the full length without NUL. */
STOKER_API size_t stoker_dataset_where(const stoker_dataset *dataset, int64_t index, char *buffer, size_t size);

/* Reads and decodes sample `index` whole. */
STOKER_API stoker_status stoker_dataset_decode(const stoker_dataset *dataset, int64_t index, stoker_image *out);

/* Copies the encoded bytes of sample `index` (a JPEG file, say) into memory that stoker_free takes back; of a sample that a pack holds
 * re-coded, a JPEG file with the same coefficients. For datasets of raw
 * pixels STOKER_ERR_UNSUPPORTED. */
STOKER_API stoker_status stoker_dataset_bytes(const stoker_dataset *dataset, int64_t index, void **data, size_t *size);

STOKER_API void stoker_free(void *memory);

/* What a full decode of a sample told. */
typedef enum stoker_verdict {
    STOKER_SOUND = 0,
    STOKER_SUSPECT = 1, /* fed, but damaged, misnamed or of a rare kind */
    STOKER_ODD = 2      /* cannot be fed */
} stoker_verdict;

typedef struct stoker_check {
    stoker_verdict verdict;
    int32_t width, height; /* 0 where unknown */
    int64_t bytes;         /* encoded size, or the raw sample's */
    const char *format;    /* "jpeg", "png", "webp", "raw", or "unknown"; static */
    char reason[512];      /* "" when sound; reasons of a suspect sample are joined by "; " */
} stoker_check;

/* Decodes sample `index` whole and says whether it is sound. Fails only on a wrong argument or lack of memory: a sample
 * that cannot be read or decoded is STOKER_ODD with the reason. */
STOKER_API stoker_status stoker_dataset_check(const stoker_dataset *dataset, int64_t index, stoker_check *out);

/* -------------------------------------------------------------------------------------------- transforms -------- */

/*
 * A spec is a list of transforms as text, read left to right, with torchvision's names in snake case, its argument names
 * and its defaults. docs/transforms.md holds the grammar and every argument. Arguments are positional or name=value; a pair
 * is (a,b) with height before width as in torchvision.
 *
 *   resize(size, interpolation=bilinear, max_size=none)      center_crop(size)
 *   random_crop(size, padding=none, pad_if_needed=false, fill=0, padding_mode=constant)
 *   pad(padding, fill=0, padding_mode=constant)              grayscale(num_output_channels=1)
 *   random_resized_crop(size, scale=(0.08,1), ratio=(3/4,4/3), interpolation=bilinear)
 *   random_horizontal_flip(p=0.5)    random_vertical_flip(p=0.5)
 *   to_tensor    normalize(mean, std) or normalize(imagenet|cifar10|cifar100|mnist|fashion_mnist)
 *   to(dtype, layout)                dtype u8 f16 bf16 f32; layout nchw nhwc
 *
 * normalize implies to_tensor; to(f16|bf16|f32) scales 0..255 to 0..1 where nothing before it did. A spec without to gives
 * f32 nchw after to_tensor or normalize, and u8 nhwc otherwise.
 */
typedef enum stoker_dtype { STOKER_U8 = 0, STOKER_F16 = 1, STOKER_BF16 = 2, STOKER_F32 = 3 } stoker_dtype;
typedef enum stoker_layout { STOKER_NCHW = 0, STOKER_NHWC = 1 } stoker_layout;

typedef struct stoker_spec stoker_spec;

/* Parses `text`. A fault is STOKER_ERR_ARGUMENT, and the message holds the reason, the column (from 1) and the text with
 * the place marked: "unknown transform 'resise' at column 1: >>resise<<(256)". An empty text is a valid spec. */
STOKER_API stoker_status stoker_spec_parse(const char *text, stoker_spec **out);
STOKER_API void stoker_spec_free(stoker_spec *spec);

/* The spec in canonical text: every argument named and given; parsing it again gives the same spec. */
STOKER_API const char *stoker_spec_text(const stoker_spec *spec);
STOKER_API stoker_dtype stoker_spec_dtype(const stoker_spec *spec);
STOKER_API stoker_layout stoker_spec_layout(const stoker_spec *spec);

/* One random choice of one sample. */
typedef enum stoker_draw_kind {
    STOKER_DRAW_CROP = 0, /* top, left, height, width in pixels of the image as it came to that transform, after that
                           * transform's own padding (random_crop, random_resized_crop) */
    STOKER_DRAW_FLIP = 1  /* value[0]: 1 if flipped (random_horizontal_flip, random_vertical_flip) */
} stoker_draw_kind;

typedef struct stoker_draw {
    int32_t transform; /* its place in the spec, from 0 */
    int32_t kind;      /* stoker_draw_kind */
    int32_t value[4];
} stoker_draw;

#define STOKER_MAX_TRANSFORMS 32 /* of a spec; also the largest number of draws of a sample */

/* The draws of one sample: Philox4x32-10 keyed by `seed`, counter (epoch, sample, transform); docs/random.md gives the
 * mapping from bits to crops and flips. `width` × `height` is the decoded image's size. Writes at most
 * STOKER_MAX_TRANSFORMS draws, their number to *count. */
STOKER_API stoker_status stoker_spec_draw(const stoker_spec *spec, uint64_t seed, uint64_t epoch, uint64_t sample,
                                          int32_t width, int32_t height, stoker_draw *draws, int32_t *count);

/* A tensor of one sample. */
typedef struct stoker_tensor {
    void *data; /* C contiguous; freed by stoker_free */
    int32_t channels, height, width;
    stoker_dtype dtype;
    stoker_layout layout; /* NCHW: channels × height × width; NHWC: height × width × channels */
} stoker_tensor;

/* Applies the spec to one image (height × width × channels bytes, rows tightly packed, channels 1 or 3) with the given
 * draws (from stoker_spec_draw, or made up by the caller: checked against the image). */
STOKER_API stoker_status stoker_spec_apply(const stoker_spec *spec, const uint8_t *pixels, int32_t width,
                                           int32_t height, int32_t channels, const stoker_draw *draws, int32_t count,
                                           stoker_tensor *out);

/* The same straight from an encoded image, decoding only the region that the spec needs (what a loader does). */
STOKER_API stoker_status stoker_spec_apply_encoded(const stoker_spec *spec, const void *data, size_t size,
                                                   const stoker_image_settings *settings, const stoker_draw *draws,
                                                   int32_t count, stoker_tensor *out);

/* ------------------------------------------------------------------------------------------------ loader -------- */

typedef struct stoker_loader stoker_loader;

typedef enum stoker_last_batch {
    STOKER_LAST_PARTIAL = 0, /* the last batch of an epoch holds what is left */
    STOKER_LAST_DROP = 1,    /* it is left out when it would not be full */
    STOKER_LAST_PAD = 2      /* it is filled with the epoch's first samples again; batch->valid tells the real ones */
} stoker_last_batch;

typedef enum stoker_on_error {
    STOKER_ON_ERROR_RAISE = 0,     /* next() fails, naming file, sample and reason; the call after it goes on with the
                                    * following batch */
    STOKER_ON_ERROR_SKIP = 1,      /* the sample is left out; its place is taken by a sample from the epoch's end, so
                                    * batches stay full and the epoch ends earlier */
    STOKER_ON_ERROR_SUBSTITUTE = 2 /* its place is taken by the next readable sample of the dataset (index + 1, …), with
                                    * that one's label; the epoch's length stays */
} stoker_on_error;

typedef struct stoker_loader_settings {
    const char *ops;       /* the spec; NULL or "" for none. Copied */
    int64_t batch;         /* samples a batch, >= 1; default 64 */
    int32_t threads;       /* workers; 0 (default): stoker_usable_cores() */
    int32_t shuffle;       /* 1 (default): a new order each epoch; 0: dataset order */
    uint64_t seed;         /* of order and draws; default 0 */
    uint64_t first_epoch;  /* number of the first epoch; default 0 */
    int64_t epochs;        /* how many epochs will be asked for; 0 (default): no limit. Look-ahead stops there */
    int32_t last_batch;    /* stoker_last_batch */
    int32_t on_error;      /* stoker_on_error */
    int32_t depth;         /* batches made ahead; 0 (default): chosen, at least 2, within ring_bytes */
    int32_t stall_seconds; /* next() fails with STOKER_ERR_STALL when nothing came for so long; default 300; 0: never */
    int64_t ring_bytes;    /* the most memory for batches made ahead; 0 (default): 512 MB. A batch that alone is larger
                              * is STOKER_ERR_LIMIT naming this setting */
    int32_t keep_draws;    /* 1: batches carry the draws of each sample; default 0 */
    int32_t reserved0;
    const int64_t *order; /* NULL (default), or an explicit order: `order_count` sample numbers, the same each epoch,
                              * `shuffle` must be 0. Copied */
    int64_t order_count;
    int64_t reserved[8];
} stoker_loader_settings;

STOKER_API void stoker_loader_default_settings(stoker_loader_settings *settings);

/* Opens a loader on `dataset`, which must stay open until the loader is closed, and starts its threads. Nothing is made
 * ahead until the first call to next. */
STOKER_API stoker_status stoker_loader_open(const stoker_dataset *dataset, const stoker_loader_settings *settings,
                                            stoker_loader **out);

/* A batch: a loan of a slot's memory, valid until stoker_batch_release, also after the loader is closed. Read-only but
 * for `images`, which the holder may overwrite. */
typedef struct stoker_batch {
    void *images;     /* count × channels × height × width (NCHW) or count × height × width × channels (NHWC),
                            * C contiguous, 64-byte aligned */
    int64_t *labels;  /* count */
    int64_t *samples; /* count: sample numbers in the dataset */
    int64_t count;    /* samples in this batch */
    int64_t valid;    /* count, or fewer where STOKER_LAST_PAD filled up: samples valid .. count are repeats */
    int32_t channels, height, width;
    stoker_dtype dtype;
    stoker_layout layout;
    uint64_t epoch;             /* number of the epoch */
    int64_t index;              /* number of the batch within its epoch, from 0 */
    const stoker_draw *draws;   /* NULL unless keep_draws: the draws of sample i are draws[i × draws_stride + k], */
    const int32_t *draw_counts; /* k < draw_counts[i] */
    int32_t draws_stride;
    int32_t reserved0;
    int64_t reserved[4];
} stoker_batch;

/* Waits for the next batch in order. STOKER_OK and a batch; STOKER_END at the end of each epoch (the call after it
 * begins the next epoch, or fails with STOKER_ERR_STATE when `epochs` are done); or an error. */
STOKER_API stoker_status stoker_loader_next(stoker_loader *loader, stoker_batch **out);

/* As stoker_loader_next, but waits at most `milliseconds` (at least 1) and then fails with STOKER_ERR_TIMEOUT; nothing is
 * lost, and the next call goes on waiting. For callers that must look at signals now and then. */
STOKER_API stoker_status stoker_loader_next_within(stoker_loader *loader, int32_t milliseconds, stoker_batch **out);

/* Gives the slot back. Any thread. Takes NULL. */
STOKER_API void stoker_batch_release(stoker_batch *batch);

/* Goes to the beginning of `epoch`: what was made ahead and does not belong there is thrown away. */
STOKER_API stoker_status stoker_loader_seek(stoker_loader *loader, uint64_t epoch);

/* Makes a waiting (or the next) stoker_loader_next return STOKER_ERR_INTERRUPTED once. Any thread; async-signal-safe. */
STOKER_API void stoker_loader_interrupt(stoker_loader *loader);

/* Stops the threads and frees everything but batches still on loan. Returns at once in the sense that no more than the
 * samples being decoded are waited for. */
STOKER_API void stoker_loader_close(stoker_loader *loader);

/* Batches in a full epoch, as len() has it (skipped samples may make it fewer). */
STOKER_API int64_t stoker_loader_batches(const stoker_loader *loader);

/* Samples in an epoch. */
STOKER_API int64_t stoker_loader_samples(const stoker_loader *loader);

/* Writes the sample numbers of `epoch` in order, positions first .. first+count. */
STOKER_API stoker_status stoker_loader_order(const stoker_loader *loader, uint64_t epoch, int64_t first, int64_t count,
                                             int64_t *samples);

#define STOKER_STAGES 5
typedef enum stoker_stage {
    STOKER_STAGE_READ = 0,      /* getting the encoded bytes; bytes: read */
    STOKER_STAGE_DECODE = 1,    /* bytes to pixels; bytes: pixels made */
    STOKER_STAGE_TRANSFORM = 2, /* pixels to tensor, in place in the batch; bytes: tensor bytes */
    STOKER_STAGE_STARVED = 3,   /* workers waiting for a free slot: the loop is slower than the loader */
    STOKER_STAGE_WAIT = 4       /* the loop waiting for a batch: the loader is slower than the loop */
} stoker_stage;

typedef struct stoker_stats {
    int64_t samples, batches, epochs;    /* delivered to the loop */
    int64_t skipped;                     /* samples left out or replaced */
    int64_t bytes;                       /* written into batches delivered */
    double seconds;                      /* since open */
    double first_batch_seconds;          /* from the first call to next to its return; 0 before */
    double stage_seconds[STOKER_STAGES]; /* summed over workers (WAIT: the loop's) */
    int64_t stage_bytes[STOKER_STAGES];
    int64_t ring_bytes; /* memory of the slots now */
    int32_t threads, depth;
    int64_t reserved[8];
} stoker_stats;

STOKER_API void stoker_loader_stats(const stoker_loader *loader, stoker_stats *out);

/* A stage's name for people and for JSON: "read", "decode", "transform", "starved", "wait". Static. */
STOKER_API const char *stoker_stage_name(stoker_stage stage);

/* The samples that were skipped or replaced so far, oldest first, at most the first 10,000 (stats.skipped counts all).
 * `index` from 0; returns STOKER_END past the last. `reason` is written, cut to `size` bytes. Any thread. */
STOKER_API stoker_status stoker_loader_skipped(const stoker_loader *loader, int64_t index, int64_t *sample,
                                               uint64_t *epoch, char *reason, size_t size);

/* ------------------------------------------------------------------------------------------------- packs -------- */

/*
 * A pack is one file that holds a whole dataset in forms that are fast to read, without changing a pixel: docs/pack-format.md.
 * Opened by stoker_dataset_open it is a dataset like any other.
 */
typedef enum stoker_pack_mode {
    STOKER_PACK_AUTO = 0, /* dct for image files, raw for raw samples (CIFAR, MNIST) */
    STOKER_PACK_DCT = 1,  /* JPEG coefficients re-coded for vector units, readable by region */
    STOKER_PACK_RAW = 2,  /* decoded pixels: height × width × 3 bytes an image */
    STOKER_PACK_KEEP = 3, /* the files' own bytes */
    STOKER_PACK_JPEG =
        4 /* JPEG files with the best Huffman tables and restart markers, between which a crop need not read */
} stoker_pack_mode;

typedef struct stoker_pack_settings {
    int32_t mode;      /* stoker_pack_mode */
    int32_t overwrite; /* 1: a file that has the pack's name already is replaced at the end; default 0 */
    /* Called now and then by any thread, never by two at once, with samples done and all; NULL: not called. A return other than 0
     * ends the work with STOKER_ERR_INTERRUPTED; the same call again goes on from there. */
    int (*progress)(void *context, int64_t done, int64_t all);
    /* Called in the same way for each sample that cannot be decoded (packing) or is damaged (verifying); may be NULL. The strings
     * last as long as the call. */
    void (*problem)(void *context, const char *where, const char *reason);
    void *context;
    int64_t reserved[8];
} stoker_pack_settings;

STOKER_API void stoker_pack_default_settings(stoker_pack_settings *settings);

typedef struct stoker_pack_report {
    int64_t samples;
    int64_t bytes_in, bytes_out;      /* the samples' bytes in the source; the pack's size */
    int64_t resumed;                  /* samples that an interrupted run had packed before */
    int64_t dct, raw, original, jpeg; /* samples by what holds them */
    int64_t odd; /* samples that cannot be decoded: kept as they are, and refused when read, as from their files */
    int64_t reserved[8];
} stoker_pack_report;

/*
 * Packs all samples of `dataset`, in their order, into the file `path`, with all cores. Each image is decoded both ways; one whose
 * pixels would differ, or of a kind that a mode does not re-code, keeps its own bytes, so nothing is changed or lost. `source` is the
 * path that the dataset was opened by, or NULL: samples are kept by their paths below it. `settings` and `report` may be NULL.
 *
 * The file is written as `path`.partial and renamed when it is whole. An interrupted run leaves the partial file, and the next one goes
 * on from it as far as the source is still the same. Memory: a few images a core, and 48 bytes a sample.
 *
 * STOKER_ERR_ARGUMENT where `path` exists; STOKER_ERR_STATE where another packer is writing it; STOKER_ERR_IO where the disk has too
 * little room (looked at before the work begins) or a file cannot be read.
 */
STOKER_API stoker_status stoker_pack(const stoker_dataset *dataset, const char *source, const char *path,
                                     const stoker_pack_settings *settings, stoker_pack_report *report);

/* Checks every checksum of a pack, with all cores; *damaged: how many samples are (each is told to settings->problem, as are bytes
 * between them that should be zero). STOKER_OK when none is; STOKER_ERR_DATA when some are or the pack cannot be opened. `settings`
 * and `damaged` may be NULL. */
STOKER_API stoker_status stoker_pack_verify(const char *path, const stoker_pack_settings *settings, int64_t *damaged);

typedef struct stoker_unpack_report {
    int64_t samples;
    int64_t identical; /* files that are the source's byte for byte */
    int64_t pixels;    /* files with the same pixels: JPEG files of the same coefficients, PNG files of raw samples */
    int64_t bytes;     /* written */
    int64_t reserved[8];
} stoker_unpack_report;

/* Gives the dataset back as files in `folder`, which must be new or empty: by their paths in the source, or for raw samples
 * `class name/number.png` (below `train` and `test` where there are these parts). Paths that would leave the folder are refused.
 * `settings` (progress) and `report` may be NULL. */
STOKER_API stoker_status stoker_unpack(const char *path, const char *folder, const stoker_pack_settings *settings,
                                       stoker_unpack_report *report);

#ifdef __cplusplus
}
#endif

#endif /* STOKER_H */
