/* SPDX-License-Identifier: Apache-2.0 */
#include "proto_schema.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "gen.h"
#include "proto.h"

/* A message: fields in words "NUMBER[*]TYPE NAME[:MESSAGE]" without the space; * is repeated.
 * Types: s text, i and b number and boolean whose zero means absent, j and c the same where zero
 * is a value, y bytes, q quantity, t time, u time with microseconds, o number or text, m message,
 * e message whose fields belong to this one, S Y Q maps from text.
 * Numbers are those of the generated.proto files of https://github.com/kubernetes/api . */
struct message {
    const char *name;
    const char *fields;
};

#define META "1mmetadata:ObjectMeta "
#define OBJECT(name, spec)                                                                         \
    {                                                                                              \
        name, META "2mspec:" spec                                                                  \
    }
#define REPLICATED "1jreplicas 2mselector:LabelSelector 3mtemplate:PodTemplateSpec "

static const struct message messages[] = {
    {"ObjectMeta", "1sname 2sgenerateName 3snamespace 5suid 6sresourceVersion 7igeneration "
                   "8tcreationTimestamp 9tdeletionTimestamp 11Slabels 12Sannotations "
                   "13*mownerReferences:OwnerReference 14*sfinalizers"},
    {"OwnerReference", "5sapiVersion 1skind 3sname 4suid 6ccontroller 7cblockOwnerDeletion"},
    {"LabelSelector", "1SmatchLabels 2*mmatchExpressions:Requirement"},
    {"Requirement", "1skey 2soperator 3*svalues"},
    {"ObjectReference", "1skind 2snamespace 3sname 4suid 5sapiVersion 6sresourceVersion "
                        "7sfieldPath"},
    {"NamedReference", "1sname"},
    {"DeleteOptions", "1jgracePeriodSeconds 2mpreconditions:Preconditions 3corphanDependents "
                      "4spropagationPolicy 5*sdryRun"},
    {"Preconditions", "1suid 2sresourceVersion"},
    {"Eviction", META "2mdeleteOptions:DeleteOptions"},
    OBJECT("Namespace", "NamespaceSpec"),
    {"NamespaceSpec", "1*sfinalizers"},
    {"ConfigMap", META "4cimmutable 2Sdata 3YbinaryData"},
    {"Secret", META "5cimmutable 2Ydata 4SstringData 3stype"},
    {"ServiceAccount", META "2*msecrets:ObjectReference 3*mimagePullSecrets:NamedReference "
                            "4cautomountServiceAccountToken"},
    OBJECT("Service", "ServiceSpec"),
    {"ServiceSpec", "1*mports:ServicePort 2Sselector 3sclusterIP 18*sclusterIPs 4stype "
                    "7ssessionAffinity 10sexternalName 11sexternalTrafficPolicy"},
    {"ServicePort", "1sname 2sprotocol 3iport 4otargetPort 5inodePort"},
    OBJECT("Pod", "PodSpec"),
    {"PodSpec", "1*mvolumes:Volume 20*minitContainers:Container 2*mcontainers:Container "
                "3srestartPolicy 4jterminationGracePeriodSeconds 5jactiveDeadlineSeconds "
                "6sdnsPolicy 7SnodeSelector 8sserviceAccountName 9sserviceAccount "
                "21cautomountServiceAccountToken 10snodeName 11bhostNetwork 12bhostPID 13bhostIPC "
                "14msecurityContext:PodSecurityContext 15*mimagePullSecrets:NamedReference "
                "16shostname 17ssubdomain 19sschedulerName 22*mtolerations:Toleration "
                "24spriorityClassName 25jpriority 29sruntimeClassName 30cenableServiceLinks"},
    {"Container", "1sname 2simage 3*scommand 4*sargs 5sworkingDir 6*mports:ContainerPort "
                  "7*menv:EnvVar 8mresources:Resources 9*mvolumeMounts:VolumeMount "
                  "10mlivenessProbe:Probe 11mreadinessProbe:Probe 22mstartupProbe:Probe "
                  "13sterminationMessagePath 20sterminationMessagePolicy 14simagePullPolicy "
                  "15msecurityContext:SecurityContext 16bstdin 17bstdinOnce 18btty"},
    {"ContainerPort", "1sname 2ihostPort 3icontainerPort 4sprotocol 5shostIP"},
    {"EnvVar", "1sname 2svalue 3mvalueFrom:EnvVarSource"},
    {"EnvVarSource", "1mfieldRef:FieldRef 3mconfigMapKeyRef:KeyRef 4msecretKeyRef:KeyRef"},
    {"FieldRef", "1sapiVersion 2sfieldPath"},
    {"KeyRef", "1eref:NamedReference 2skey 3coptional"},
    {"Resources", "1Qlimits 2Qrequests"},
    {"VolumeMount", "1sname 2breadOnly 3smountPath 4ssubPath 5smountPropagation 6ssubPathExpr"},
    {"Probe", "1ehandler:ProbeHandler 2iinitialDelaySeconds 3itimeoutSeconds 4iperiodSeconds "
              "5isuccessThreshold 6ifailureThreshold"},
    {"ProbeHandler", "1mexec:ExecAction 2mhttpGet:HttpGet 3mtcpSocket:TcpSocket"},
    {"ExecAction", "1*scommand"},
    {"HttpGet", "1spath 2oport 3shost 4sscheme"},
    {"TcpSocket", "1oport 2shost"},
    {"SecurityContext", "2cprivileged 4jrunAsUser 8jrunAsGroup 5crunAsNonRoot "
                        "6creadOnlyRootFilesystem 7callowPrivilegeEscalation"},
    {"PodSecurityContext", "2jrunAsUser 6jrunAsGroup 3crunAsNonRoot 5jfsGroup"},
    {"Volume", "1sname 2evolumeSource:VolumeSource"},
    {"VolumeSource", "1mhostPath:HostPath 2memptyDir:EmptyDir 6msecret:SecretVolume "
                     "10mpersistentVolumeClaim:ClaimVolume 19mconfigMap:ConfigMapVolume"},
    {"EmptyDir", "1smedium 2qsizeLimit"},
    {"HostPath", "1spath 2stype"},
    {"ConfigMapVolume", "1eref:NamedReference 2*mitems:KeyToPath 3jdefaultMode 4coptional"},
    {"SecretVolume", "1ssecretName 2*mitems:KeyToPath 3jdefaultMode 4coptional"},
    {"ClaimVolume", "1sclaimName 2breadOnly"},
    {"KeyToPath", "1skey 2spath 3jmode"},
    {"Toleration", "1skey 2soperator 3svalue 4seffect 5jtolerationSeconds"},
    {"PodTemplateSpec", META "2mspec:PodSpec"},
    OBJECT("Deployment", "DeploymentSpec"),
    {"DeploymentSpec", REPLICATED "4mstrategy:DeploymentStrategy 5iminReadySeconds "
                                  "6jrevisionHistoryLimit 7bpaused 9jprogressDeadlineSeconds"},
    {"DeploymentStrategy", "1stype 2mrollingUpdate:RollingUpdate"},
    {"RollingUpdate", "1omaxUnavailable 2omaxSurge"},
    OBJECT("Job", "JobSpec"),
    {"JobSpec", "1jparallelism 2jcompletions 3jactiveDeadlineSeconds 7jbackoffLimit "
                "4mselector:LabelSelector 6mtemplate:PodTemplateSpec 8jttlSecondsAfterFinished "
                "10csuspend"},
    OBJECT("CronJob", "CronJobSpec"),
    {"CronJobSpec", "1sschedule 8stimeZone 3sconcurrencyPolicy 4csuspend 5mjobTemplate:JobTemplate "
                    "6jsuccessfulJobsHistoryLimit 7jfailedJobsHistoryLimit"},
    {"JobTemplate", META "2mspec:JobSpec"},
    {"Role", META "2*mrules:PolicyRule"},
    {"ClusterRole", META "2*mrules:PolicyRule"},
    {"RoleBinding", META "2*msubjects:Subject 3mroleRef:RoleRef"},
    {"ClusterRoleBinding", META "2*msubjects:Subject 3mroleRef:RoleRef"},
    {"PolicyRule", "1*sverbs 2*sapiGroups 3*sresources 4*sresourceNames 5*snonResourceURLs"},
    {"Subject", "1skind 2sapiGroup 3sname 4snamespace"},
    {"RoleRef", "1sapiGroup 2skind 3sname"},
    OBJECT("Lease", "LeaseSpec"),
    {"LeaseSpec", "1sholderIdentity 2jleaseDurationSeconds 3uacquireTime 4urenewTime "
                  "5jleaseTransitions"},
    {"Event", META "2minvolvedObject:ObjectReference 3sreason 4smessage 5msource:EventSource "
                   "6tfirstTimestamp 7tlastTimestamp 8icount 9stype 10ueventTime 12saction "
                   "14sreportingComponent 15sreportingInstance"},
    {"EventSource", "1scomponent 2shost"},
    OBJECT("PodDisruptionBudget", "BudgetSpec"),
    {"BudgetSpec", "1ominAvailable 2mselector:LabelSelector 3omaxUnavailable"},
    OBJECT("ResourceQuota", "QuotaSpec"),
    {"QuotaSpec", "1Qhard 2*sscopes"},
    OBJECT("SelfSubjectAccessReview", "AccessSpec"),
    OBJECT("SubjectAccessReview", "AccessSpec"),
    OBJECT("LocalSubjectAccessReview", "AccessSpec"),
    {"AccessSpec", "1mresourceAttributes:Attributes 2mnonResourceAttributes:PathAttributes "
                   "3suser"},
    {"Attributes", "1snamespace 2sverb 3sgroup 4sversion 5sresource 6ssubresource 7sname"},
    {"PathAttributes", "1spath 2sverb"},
    OBJECT("SelfSubjectRulesReview", "RulesSpec"),
    {"RulesSpec", "1snamespace"},
    {"SelfSubjectReview", META},
    OBJECT("TokenRequest", "TokenSpec"),
    {"TokenSpec", "1*saudiences 4jexpirationSeconds"},
};

struct field { /* one word of the table */
    unsigned number;
    bool repeated;
    char type;
    char name[48];
    char message[40];
};

static const struct message *find_message(const char *name)
{
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        if (strcmp(messages[i].name, name) == 0)
            return &messages[i];
    return NULL;
}

static bool find_field(const struct message *m, unsigned number, struct field *out)
{
    const char *p = m->fields;

    while (*p != '\0') {
        size_t n = strcspn(p, " "), colon = 0;
        char *end;

        *out = (struct field){.number = (unsigned)strtoul(p, &end, 10)};
        out->repeated = *end == '*';
        end += out->repeated;
        out->type = *end++;
        colon = strcspn(end, ": ");
        snprintf(out->name, sizeof out->name, "%.*s", (int)colon, end);
        if (end[colon] == ':')
            snprintf(out->message, sizeof out->message, "%.*s", (int)strcspn(end + colon + 1, " "),
                     end + colon + 1);
        if (out->number == number)
            return true;
        p += n + (p[n] == ' ');
    }
    return false;
}

/* ---- values */

static struct json_object *text_value(struct kr_bytes b)
{
    return json_object_new_string_len((const char *)b.p, (int)b.n);
}

static struct json_object *base64_value(struct kr_bytes b)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = malloc(b.n * 4 / 3 + 8);
    struct json_object *v;
    size_t n = 0;

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < b.n; i += 3) {
        uint32_t bits = (uint32_t)b.p[i] << 16 | (uint32_t)(i + 1 < b.n ? b.p[i + 1] : 0) << 8 |
                        (i + 2 < b.n ? b.p[i + 2] : 0);

        out[n++] = digits[bits >> 18];
        out[n++] = digits[bits >> 12 & 63];
        out[n++] = i + 1 < b.n ? digits[bits >> 6 & 63] : '=';
        out[n++] = i + 2 < b.n ? digits[bits & 63] : '=';
    }
    v = json_object_new_string_len(out, (int)n);
    free(out);
    return v;
}

static struct json_object *time_value(struct kr_bytes b, bool micro)
{
    struct sim_proto_field f;
    int64_t seconds = 0, nanos = 0;
    char text[64];

    while (sim_proto_next(&b, &f)) {
        if (f.number == 1)
            seconds = (int64_t)f.varint;
        else if (f.number == 2)
            nanos = (int64_t)f.varint;
    }
    if (seconds == 0)
        return NULL;
    sim_time(seconds * 1000, text);
    if (micro)
        snprintf(text + 19, sizeof text - 19, ".%06dZ", (int)(nanos / 1000));
    return json_object_new_string(text);
}

/* A number or a text: field 1 says which (0 or 1), 2 is the number, 3 the text. */
static struct json_object *int_or_text(struct kr_bytes b)
{
    struct kr_bytes text = sim_proto_find(b, 3);
    struct sim_proto_field f;
    int64_t number = 0;
    bool is_text = false;

    while (sim_proto_next(&b, &f)) {
        if (f.number == 1)
            is_text = f.varint == 1;
        else if (f.number == 2)
            number = (int32_t)f.varint;
    }
    return is_text ? text_value(text) : json_object_new_int64(number);
}

static void put_map_entry(struct json_object *v, const struct field *f, struct kr_bytes entry)
{
    struct kr_bytes key = sim_proto_find(entry, 1), value = sim_proto_find(entry, 2);
    char name[320];

    snprintf(name, sizeof name, "%.*s", (int)key.n, (const char *)key.p);
    if (f->type == 'Q')
        value = sim_proto_find(value, 1);
    sim_json_set(sim_json_child(v, f->name), name,
                 f->type == 'Y' ? base64_value(value) : text_value(value));
}

static void decode(const struct message *m, struct kr_bytes in, struct json_object *v);

static struct json_object *message_value(const struct field *f, struct kr_bytes b)
{
    const struct message *m = find_message(f->message);
    struct json_object *v = json_object_new_object();

    if (m != NULL)
        decode(m, b, v);
    return v;
}

/* The value of one field; NULL: absent (or a time that is zero). */
static struct json_object *value_of(const struct field *f, const struct sim_proto_field *in)
{
    switch (f->type) {
    case 's':
        return in->bytes.n != 0 || f->repeated ? text_value(in->bytes) : NULL;
    case 'i':
    case 'j':
        return in->varint != 0 || f->type == 'j' ? json_object_new_int64((int64_t)in->varint)
                                                 : NULL;
    case 'b':
    case 'c':
        return in->varint != 0 || f->type == 'c' ? json_object_new_boolean(in->varint != 0) : NULL;
    case 'y':
        return base64_value(in->bytes);
    case 'q':
        return text_value(sim_proto_find(in->bytes, 1));
    case 't':
    case 'u':
        return time_value(in->bytes, f->type == 'u');
    case 'o':
        return int_or_text(in->bytes);
    case 'm':
        return message_value(f, in->bytes);
    default:
        return NULL;
    }
}

static void put_field(const struct field *f, const struct sim_proto_field *in,
                      struct json_object *v)
{
    struct json_object *value, *list;

    if (isupper((unsigned char)f->type)) {
        put_map_entry(v, f, in->bytes);
        return;
    }
    if (f->type == 'e') {
        const struct message *m = find_message(f->message);

        if (m != NULL)
            decode(m, in->bytes, v);
        return;
    }
    value = value_of(f, in);
    if (value == NULL)
        return;
    if (!f->repeated) {
        sim_json_set(v, f->name, value);
        return;
    }
    list = sim_json_get(v, f->name);
    if (list == NULL)
        sim_json_set(v, f->name, list = json_object_new_array());
    json_object_array_add(list, value);
}

/* Recursion is as deep as the table, which has no circle. */
static void decode(const struct message *m, struct kr_bytes in, struct json_object *v)
{
    struct sim_proto_field f;
    struct field word;

    while (sim_proto_next(&in, &f))
        if (find_field(m, f.number, &word))
            put_field(&word, &f, v);
}

bool sim_proto_is_body(struct kr_bytes body)
{
    return kr_bytes_starts(body, kr_bytes_of("k8s\0", 4));
}

struct json_object *sim_proto_object(struct kr_bytes body)
{
    struct kr_bytes unknown = kr_bytes_skip(body, 4), type = sim_proto_find(unknown, 1);
    struct kr_bytes kind = sim_proto_find(type, 2), version = sim_proto_find(type, 1);
    const struct message *m;
    struct json_object *v;
    char name[64];

    snprintf(name, sizeof name, "%.*s", (int)kind.n, (const char *)kind.p);
    m = find_message(name);
    if (m == NULL)
        return NULL;
    v = json_object_new_object();
    sim_json_set(v, "kind", text_value(kind));
    sim_json_set(v, "apiVersion", text_value(version));
    decode(m, sim_proto_find(unknown, 2), v);
    return v;
}
