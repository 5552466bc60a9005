/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_review: SelfSubjectAccessReview and SelfSubjectRulesReview at /clusters/ and a star
 * (kubectl auth can-i, --list): answered by the hub, for what the fleet view shows. What is asked
 * below /clusters/NAME goes to the cluster. Limits: a body of 64 KiB, JSON or protobuf. Threads:
 * the worker's. */
#ifndef HUB_FLEET_REVIEW_H
#define HUB_FLEET_REVIEW_H

#include "hub/request.h"

/* Whether it is one; then it is under way, and hub_fleet_review_gathered comes. */
bool hub_fleet_review_begin(struct hub_request *r);
void hub_fleet_review_gathered(struct hub_request *r);

#endif
