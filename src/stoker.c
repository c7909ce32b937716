/* SPDX-License-Identifier: Apache-2.0 */
#include "stoker.h"

const char *stoker_version(void)
{
    return "0.1.0";
}
