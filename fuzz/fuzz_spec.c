/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_spec.c: the text of a list of transforms. What parses has a canonical text, which parses to the same text again.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "stoker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    stoker_spec *spec = NULL, *again = NULL;

    fuzz_require(text != NULL, "memory");
    memcpy(text, data, size);
    text[size] = '\0';
    if (stoker_spec_parse(text, &spec) == STOKER_OK) {
        fuzz_require(stoker_spec_parse(stoker_spec_text(spec), &again) == STOKER_OK, "a canonical text parses");
        fuzz_require(strcmp(stoker_spec_text(spec), stoker_spec_text(again)) == 0, "a canonical text is its own");
        fuzz_require(stoker_spec_dtype(spec) == stoker_spec_dtype(again) &&
                         stoker_spec_layout(spec) == stoker_spec_layout(again),
                     "a canonical text means the same");
        stoker_spec_free(again);
    } else {
        fuzz_require(stoker_last_error()[0] != '\0', "a refusal has a message");
    }
    stoker_spec_free(spec);
    free(text);
    return 0;
}
