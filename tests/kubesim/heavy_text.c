/* SPDX-License-Identifier: Apache-2.0 */
#include "heavy_text.h"

#include "base/assert.h"
#include "gen.h"

/* JSON with ' for " (requote), and places: $ and a letter (heavy_text.h). */

static const char *const helpers[] = {"main", "log-shipper", "metrics-proxy"};

/* ---- pods */

static void pod_managed_container(unsigned which, unsigned envs, struct kr_buf *out)
{
    kr_buf_printf(out, "%s'k:{\\'name\\':\\'%s\\'}':{'.':{},", which != 0 ? "," : "",
                  helpers[which]);
    kr_buf_append_str(out, "'f:args':{},'f:env':{'.':{}");
    for (unsigned i = 0; i < envs; i++)
        kr_buf_printf(
            out, ",'k:{\\'name\\':\\'APP_SETTING_%03u\\'}':{'.':{},'f:name':{},'f:value':{}}", i);
    kr_buf_append_str(
        out,
        "},'f:image':{},'f:imagePullPolicy':{},'f:livenessProbe':{'.':{},'f:failureThreshold':{},'"
        "f:httpGet':{'.':{},'f:path':{},'f:port':{},'f:scheme':{}},'f:periodSeconds':{},'f:"
        "successThreshold':{},'f:timeoutSeconds':{}},'f:name':{},'f:ports':{'.':{},'k:{\\'"
        "containerPort\\':8080,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:containerPort':{},'f:name':{},"
        "'f:protocol':{}}},'f:readinessProbe':{'.':{},'f:failureThreshold':{},'f:httpGet':{'.':{},'"
        "f:path':{},'f:port':{},'f:scheme':{}},'f:periodSeconds':{},'f:successThreshold':{},'f:"
        "timeoutSeconds':{}},'f:resources':{'.':{},'f:limits':{'.':{},'f:cpu':{},'f:memory':{}},'f:"
        "requests':{'.':{},'f:cpu':{},'f:memory':{}}},'f:securityContext':{'.':{},'f:"
        "allowPrivilegeEscalation':{},'f:readOnlyRootFilesystem':{}},'f:terminationMessagePath':{},"
        "'f:terminationMessagePolicy':{},'f:volumeMounts':{'.':{},'k:{\\'mountPath\\':\\'/etc/"
        "app\\'}':{'.':{},'f:mountPath':{},'f:name':{},'f:readOnly':{}}}}");
}

static const char pod_managed_controller[] =
    "{'manager':'kube-controller-manager','operation':'Update','apiVersion':'v1','time':'$b','"
    "fieldsType':'FieldsV1','fieldsV1':{'f:metadata':{'f:annotations':{'.':{},'f:checksum/"
    "config':{},'f:prometheus.io/port':{},'f:prometheus.io/"
    "scrape':{},'f:simulated-by':{}},'f:generateName':{},'f:labels':{'.':{},'f:app':{},'f:app."
    "kubernetes.io/instance':{},'f:app.kubernetes.io/"
    "name':{},'f:pod-template-hash':{},'f:tier':{}},'f:ownerReferences':{'.':{},'k:{\\'uid\\':\\'$"
    "o\\'}':{}}},'f:spec':{'f:affinity':{'.':{},'f:podAntiAffinity':{'.':{},'f:"
    "preferredDuringSchedulingIgnoredDuringExecution':{}}},'f:containers':{";

static const char pod_managed_controller_end[] =
    "},'f:dnsPolicy':{},'f:enableServiceLinks':{},'f:restartPolicy':{},'f:schedulerName':{},'f:"
    "securityContext':{'.':{},'f:fsGroup':{},'f:runAsNonRoot':{},'f:runAsUser':{}},'f:"
    "serviceAccount':{},'f:serviceAccountName':{},'f:terminationGracePeriodSeconds':{},'f:volumes':"
    "{'.':{},'k:{\\'name\\':\\'config\\'}':{'.':{},'f:configMap':{'.':{},'f:defaultMode':{},'f:"
    "name':{}},'f:name':{}}}}}},";

static const char pod_managed_kubelet[] =
    "{'manager':'kubelet','operation':'Update','apiVersion':'v1','time':'$c','fieldsType':'"
    "FieldsV1','fieldsV1':{'f:status':{'f:conditions':{";
static const char pod_managed_kubelet_end[] =
    "},'f:containerStatuses':{},'f:hostIP':{},'f:hostIPs':{},'f:phase':{},'f:podIP':{},'f:podIPs':{"
    "'.':{},'k:{\\'ip\\':\\'$i\\'}':{'.':{},'f:ip':{}}},'f:startTime':{}}},'subresource':'status'}]"
    "},";

static void pod_managed_status(struct kr_buf *out)
{
    static const char *const types[] = {"ContainersReady", "Initialized",
                                        "PodReadyToStartContainers", "Ready"};

    kr_buf_append_str(out, pod_managed_kubelet);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        kr_buf_printf(out,
                      "%s'k:{\\'type\\':\\'%s\\'}':{'.':{},'f:lastProbeTime':{},'f:"
                      "lastTransitionTime':{},'f:status':{},'f:type':{}}",
                      i != 0 ? "," : "", types[i]);
    kr_buf_append_str(out, pod_managed_kubelet_end);
}

static void pod_metadata(unsigned containers, const unsigned *envs, struct kr_buf *out)
{
    kr_buf_append_str(
        out, "{'kind':'Pod','apiVersion':'v1','metadata':{'name':'$n','generateName':'$r-','"
             "namespace':'$s','uid':'$u','resourceVersion':'$v','generation':1,'creationTimestamp':"
             "'$b','labels':{'app':'$a','app.kubernetes.io/instance':'$a','app.kubernetes.io/"
             "name':'$w','pod-template-hash':'$h','tier':'$t'},'annotations':{'checksum/"
             "config':'$C','prometheus.io/port':'8080','prometheus.io/"
             "scrape':'true','simulated-by':'kubesim'$T},'ownerReferences':[{'apiVersion':'apps/"
             "v1','kind':'ReplicaSet','name':'$r','uid':'$o','controller':true,'blockOwnerDeletion'"
             ":true}],'managedFields':[");
    kr_buf_append_str(out, pod_managed_controller);
    for (unsigned i = 0; i < containers; i++)
        pod_managed_container(i, envs[i], out);
    kr_buf_append_str(out, pod_managed_controller_end);
    pod_managed_status(out);
}

static void pod_container(unsigned which, unsigned envs, struct kr_buf *out)
{
    kr_buf_printf(out, "%s{'name':'%s',", which != 0 ? "," : "", helpers[which]);
    if (which == 0)
        kr_buf_append_str(out, "'image':'registry.example/team/$w:1.$V.0',");
    else
        kr_buf_printf(out, "'image':'registry.example/platform/%s:2.4.1',", helpers[which]);
    kr_buf_append_str(out, "'args':['--config=/etc/app/"
                           "config.yaml','--listen=:8080','--log-format=json'],'ports':[{'name':'"
                           "http','containerPort':8080,'protocol':'TCP'}],'env':[");
    for (unsigned i = 0; i < envs; i++)
        kr_buf_printf(out, "%s{'name':'APP_SETTING_%03u','value':'value-%03u.$w:8443'}",
                      i != 0 ? "," : "", i, i);
    kr_buf_append_str(
        out, "],'resources':{'limits':{'cpu':'500m','memory':'256Mi'},'requests':{'cpu':'50m','"
             "memory':'64Mi'}},'volumeMounts':[{'name':'config','readOnly':true,'mountPath':'/etc/"
             "app'},{'name':'kube-api-access-$f','readOnly':true,'mountPath':'/var/run/secrets/"
             "kubernetes.io/serviceaccount'}],'livenessProbe':{'httpGet':{'path':'/"
             "healthz','port':8080,'scheme':'HTTP'},'timeoutSeconds':1,'periodSeconds':10,'"
             "successThreshold':1,'failureThreshold':3},'readinessProbe':{'httpGet':{'path':'/"
             "readyz','port':8080,'scheme':'HTTP'},'timeoutSeconds':1,'periodSeconds':5,'"
             "successThreshold':1,'failureThreshold':3},'terminationMessagePath':'/dev/"
             "termination-log','terminationMessagePolicy':'File','imagePullPolicy':'IfNotPresent','"
             "securityContext':{'readOnlyRootFilesystem':true,'allowPrivilegeEscalation':false}}");
}

static void pod_spec(unsigned containers, const unsigned *envs, struct kr_buf *out)
{
    kr_buf_append_str(out,
                      "'spec':{'volumes':[{'name':'config','configMap':{'name':'$a-config','"
                      "defaultMode':420}},{'name':'kube-api-access-$f','projected':{'sources':[{'"
                      "serviceAccountToken':{'expirationSeconds':3607,'path':'token'}},{'configMap'"
                      ":{'name':'kube-root-ca.crt','items':[{'key':'ca.crt','path':'ca.crt'}]}},{'"
                      "downwardAPI':{'items':[{'path':'namespace','fieldRef':{'apiVersion':'v1','"
                      "fieldPath':'metadata.namespace'}}]}}],'defaultMode':420}}],'containers':[");
    for (unsigned i = 0; i < containers; i++)
        pod_container(i, envs[i], out);
    kr_buf_append_str(
        out,
        "],'restartPolicy':'Always','terminationGracePeriodSeconds':30,'dnsPolicy':'ClusterFirst','"
        "serviceAccountName':'$a','serviceAccount':'$a','nodeName':'$d','securityContext':{'"
        "runAsUser':10001,'runAsNonRoot':true,'fsGroup':10001},'affinity':{'podAntiAffinity':{'"
        "preferredDuringSchedulingIgnoredDuringExecution':[{'weight':100,'podAffinityTerm':{'"
        "labelSelector':{'matchLabels':{'app':'$a'}},'topologyKey':'kubernetes.io/"
        "hostname'}}]}},'schedulerName':'default-scheduler','tolerations':[{'key':'node.kubernetes."
        "io/"
        "not-ready','operator':'Exists','effect':'NoExecute','tolerationSeconds':300},{'key':'node."
        "kubernetes.io/"
        "unreachable','operator':'Exists','effect':'NoExecute','tolerationSeconds':300}],'priority'"
        ":0,'enableServiceLinks':true,'preemptionPolicy':'PreemptLowerPriority'},");
}

static void pod_container_status(unsigned which, struct kr_buf *out)
{
    kr_buf_printf(out, "%s{'name':'%s',", which != 0 ? "," : "", helpers[which]);
    if (which == 0)
        kr_buf_append_str(
            out, "'state':$S,'lastState':$L,'ready':$B,'restartCount':$x,'image':'registry.example/"
                 "team/$w:1.$V.0','imageID':'registry.example/team/$w@sha256:$I',");
    else
        kr_buf_printf(
            out,
            "'state':{'running':{'startedAt':'$b'}},'lastState':{},'ready':true,'restartCount':0,'"
            "image':'registry.example/platform/%s:2.4.1','imageID':'registry.example/platform/"
            "%s@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a0%u',",
            helpers[which], helpers[which], which);
    kr_buf_printf(out, "'containerID':'containerd://$%c','started':true}", '1' + (int)which);
}

static void pod_status(unsigned containers, struct kr_buf *out)
{
    kr_buf_append_str(
        out, "'status':{'observedGeneration':1,'phase':'Running','conditions':[{'type':'"
             "PodReadyToStartContainers','observedGeneration':1,'status':'True','lastProbeTime':"
             "null,'lastTransitionTime':'$b'},{'type':'Initialized','observedGeneration':1,'status'"
             ":'True','lastProbeTime':null,'lastTransitionTime':'$b'},{'type':'Ready','"
             "observedGeneration':1,'status':'$R','lastProbeTime':null,'lastTransitionTime':'$c'$E}"
             ",{'type':'ContainersReady','observedGeneration':1,'status':'$R','lastProbeTime':null,"
             "'lastTransitionTime':'$c'$E},{'type':'PodScheduled','observedGeneration':1,'status':'"
             "True','lastProbeTime':null,'lastTransitionTime':'$b'}],'hostIP':'$H','hostIPs':[{'ip'"
             ":'$H'}],'podIP':'$i','podIPs':[{'ip':'$i'}],'startTime':'$b','containerStatuses':[");
    for (unsigned i = 0; i < containers; i++)
        pod_container_status(i, out);
    kr_buf_append_str(out, "],'qosClass':'Burstable'}}");
}

static void requote(struct kr_buf *out)
{
    for (size_t i = 0; i < out->n; i++)
        if (out->p[i] == '\'')
            out->p[i] = '"';
}

void sim_heavy_pod_text(unsigned containers, unsigned fillers, struct kr_buf *out)
{
    unsigned envs[SIM_CONTAINERS_MAX] = {0};

    KR_ASSERT(containers >= 1 && containers <= SIM_CONTAINERS_MAX);
    for (unsigned i = 0; i < fillers; i++)
        envs[i % containers]++;
    pod_metadata(containers, envs, out);
    pod_spec(containers, envs, out);
    pod_status(containers, out);
    requote(out);
}

/* ---- nodes */

static const char node_metadata[] =
    "{'kind':'Node','apiVersion':'v1','metadata':{'name':'$n','uid':'$u','resourceVersion':'$v','"
    "creationTimestamp':'$b','labels':{'beta.kubernetes.io/arch':'amd64','beta.kubernetes.io/"
    "os':'linux','kubernetes.io/arch':'amd64','kubernetes.io/hostname':'$n','kubernetes.io/"
    "os':'linux','topology.kubernetes.io/zone':'$t'$T},'annotations':{'node.alpha.kubernetes.io/"
    "ttl':'0','simulated-by':'kubesim','volumes.kubernetes.io/"
    "controller-managed-attach-detach':'true'},'managedFields':[{'manager':'kubelet','operation':'"
    "Update','apiVersion':'v1','time':'$b','fieldsType':'FieldsV1','fieldsV1':{'f:metadata':{'f:"
    "annotations':{'.':{},'f:simulated-by':{},'f:volumes.kubernetes.io/"
    "controller-managed-attach-detach':{}},'f:labels':{'.':{},'f:beta.kubernetes.io/"
    "arch':{},'f:beta.kubernetes.io/os':{},'f:kubernetes.io/arch':{},'f:kubernetes.io/"
    "hostname':{},'f:kubernetes.io/os':{},'f:topology.kubernetes.io/"
    "zone':{}}},'f:spec':{'f:providerID':{}}}},{'manager':'kube-controller-manager','operation':'"
    "Update','apiVersion':'v1','time':'$b','fieldsType':'FieldsV1','fieldsV1':{'f:metadata':{'f:"
    "annotations':{'f:node.alpha.kubernetes.io/"
    "ttl':{}}},'f:spec':{'f:podCIDR':{},'f:podCIDRs':{'.':{},'v:\\'$i\\'':{}}}}},{'manager':'"
    "kubelet','operation':'Update','apiVersion':'v1','time':'$c','fieldsType':'FieldsV1','fieldsV1'"
    ":{'f:status':{'f:allocatable':{'f:memory':{}},'f:conditions':{'k:{\\'type\\':\\'"
    "DiskPressure\\'}':{'f:lastHeartbeatTime':{}},'k:{\\'type\\':\\'MemoryPressure\\'}':{'f:"
    "lastHeartbeatTime':{},'f:lastTransitionTime':{},'f:message':{},'f:reason':{},'f:status':{}},'"
    "k:{\\'type\\':\\'PIDPressure\\'}':{'f:lastHeartbeatTime':{}},'k:{\\'type\\':\\'Ready\\'}':{'f:"
    "lastHeartbeatTime':{},'f:lastTransitionTime':{},'f:message':{},'f:reason':{},'f:status':{}}},'"
    "f:images':{}}},'subresource':'status'}]},'spec':{'podCIDR':'$i','podCIDRs':['$i'],'providerID'"
    ":'kubesim://$a/"
    "$n'},'status':{'capacity':{'cpu':'8','ephemeral-storage':'98831908Ki','hugepages-1Gi':'0','"
    "hugepages-2Mi':'0','memory':'16384000Ki','pods':'110'},'allocatable':{'cpu':'7900m','"
    "ephemeral-storage':'91083486290','hugepages-1Gi':'0','hugepages-2Mi':'0','memory':'16281600Ki'"
    ",'pods':'110'},'conditions':[{'type':'MemoryPressure','status':'$R','lastHeartbeatTime':'$c','"
    "lastTransitionTime':'$e','reason':'$E','message':'$S'},{'type':'DiskPressure','status':'False'"
    ",'lastHeartbeatTime':'$c','lastTransitionTime':'$b','reason':'KubeletHasNoDiskPressure','"
    "message':'disk is "
    "sufficient'},{'type':'PIDPressure','status':'False','lastHeartbeatTime':'$c','"
    "lastTransitionTime':'$b','reason':'KubeletHasSufficientPID','message':'process ids are "
    "sufficient'},{'type':'Ready','status':'True','lastHeartbeatTime':'$c','lastTransitionTime':'$"
    "b','reason':'KubeletReady','message':'the simulated kubelet is "
    "ready'}],'addresses':[{'type':'InternalIP','address':'$H'},{'type':'Hostname','address':'$n'}]"
    ",'daemonEndpoints':{'kubeletEndpoint':{'Port':10250}},'nodeInfo':{'machineID':'$u','"
    "systemUUID':'$u','bootID':'$u','kernelVersion':'6.1.0-simulated','osImage':'kubesim "
    "(simulated "
    "node)','containerRuntimeVersion':'kubesim://"
    "1.0','kubeletVersion':'v1.33.0','kubeProxyVersion':'v1.33.0','operatingSystem':'linux','"
    "architecture':'amd64'},'images':[";

void sim_heavy_node_text(unsigned fillers, struct kr_buf *out)
{
    kr_buf_append_str(out, node_metadata);
    for (unsigned i = 0; i <= fillers; i++)
        kr_buf_printf(out,
                      "%s{'names':['registry.example/platform/"
                      "component-%03u@sha256:%016llx%016llx%016llx%016llx','registry.example/"
                      "platform/component-%03u:1.%u.3'],'sizeBytes':%u}",
                      i != 0 ? "," : "", i, (unsigned long long)sim_hash(i, 1, 9),
                      (unsigned long long)sim_hash(i, 2, 9), (unsigned long long)sim_hash(i, 3, 9),
                      (unsigned long long)sim_hash(i, 4, 9), i, i % 9, 20000000 + i * 1234567);
    kr_buf_append_str(out, "]}}");
    requote(out);
}
