package charttest

import (
	"strings"
	"testing"

	chartutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/strvals"
)

// Each line of the table is a wrong setting on top of a values file, and a part of the one line that refuses it.
func TestWrongValues(t *testing.T) {
	for _, test := range []struct{ file, set, want string }{
		// Typing errors.
		{"minimal", "worker.replica=2", "at '/worker': additional properties 'replica' not allowed"},
		{"minimal", "wroker.replicas=2", "additional properties 'wroker' not allowed"},
		{"minimal", "worker.scaling.maximum=2", "at '/worker/scaling': additional properties 'maximum' not allowed"},
		{"minimal", "worker.image.tga=x", "at '/worker/image': additional properties 'tga' not allowed"},
		{"minimal", "queue.tls.caSecret.nam=x", "at '/queue/tls/caSecret': additional properties 'nam' not allowed"},
		{"minimal", "queue.roles.workers.user=x", "at '/queue/roles': additional properties 'workers' not allowed"},
		{"minimal", "store.existingSecrets.worker=x", "at '/store': additional properties 'existingSecrets' not allowed"},
		{"minimal", "sources.claims[0].claim=images,sources.claims[0].path=/x,sources.claims[0].pth=/y", "at '/sources/claims/0': additional properties 'pth' not allowed"},
		{"minimal", "coordinator.resources.limit.memory=1Gi", "at '/coordinator/resources': additional properties 'limit' not allowed"},
		{"minimal", "worker.tolerations[0].ky=x", "at '/worker/tolerations/0': additional properties 'ky' not allowed"},
		{"minimal", "worker.affinity.nodeAffinty.x=y", "at '/worker/affinity': additional properties 'nodeAffinty' not allowed"},
		{"minimal", "worker.stageTimeout.solv=10m", "at '/worker/stageTimeout': additional properties 'solv' not allowed"},
		{"minimal", "metrics.podMonitor.enable=true", "at '/metrics/podMonitor': additional properties 'enable' not allowed"},
		{"minimal", "networkPolicy.metricsFrom[0].podselector.x=y", "at '/networkPolicy/metricsFrom/0': additional properties 'podselector' not allowed"},
		{"minimal", "test.timeout=3", "at '/test': additional properties 'timeout' not allowed"},
		// Wrong types and values.
		{"minimal", "worker.replicas=two", "at '/worker/replicas': got string, want integer"},
		{"minimal", "worker.kind=StatefulSet", "at '/worker/kind': value must be one of"},
		{"minimal", "worker.device=gpu", "at '/worker/device'"},
		{"minimal", "worker.batch=8", "at '/worker/batch': got number, want string"},
		{"minimal", "worker.graceSeconds=25s", "at '/worker/graceSeconds': got string, want integer"},
		{"minimal", "worker.gpu.count=0.5", "at '/worker/gpu/count'"},
		{"minimal", "worker.gpu.resource=gpu", "at '/worker/gpu/resource'"},
		{"minimal", "worker.image.digest=sha256:abc", "at '/worker/image/digest'"},
		{"minimal", "worker.resources.limits.memory=8GB", "at '/worker/resources/limits/memory'"},
		{"minimal", "worker.scaling.trigger=nats-jetstream", "at '/worker/scaling/trigger': value must be one of"},
		{"minimal", "worker.stageTimeout.solve=10", "at '/worker/stageTimeout/solve': got number, want string"},
		{"minimal", "coordinator.replicas=10", "at '/coordinator/replicas': maximum: got 10, want 9"},
		{"minimal", "workers.replicas=2", "at '/workers': got object, want array"},
		{"minimal", "workers[0].name=A100", "at '/workers/0/name'"},
		{"minimal", "workers[0].replicas=2", "a pool of `workers` has no name"},
		{"minimal", "workers[0].name=a,workers[0].replica=2", "at '/workers/0': additional properties 'replica' not allowed"},
		{"minimal", "metrics.prometheusRule.runbookBaseUrl=operations.md", "at '/metrics/prometheusRule/runbookBaseUrl'"},
		{"minimal", "worker.extraVolumeMounts[0].name=x", "at '/worker/extraVolumeMounts/0': missing property 'mountPath'"},
		{"minimal", "coordinator.lifecycle.preStart.x=y", "at '/coordinator/lifecycle': additional properties 'preStart' not allowed"},
		{"minimal", "coordinator.ackWait=1 minute", "at '/coordinator/ackWait'"},
		{"minimal", "coordinator.serviceAccount.annotations.x=1", "at '/coordinator/serviceAccount/annotations/x': got number, want string"},
		{"minimal", "coordinator.extraArgs[0]=stall", "at '/coordinator/extraArgs/0'"},
		{"minimal", "coordinator.podDisruptionBudget.maxUnavailable=half", "at '/coordinator/podDisruptionBudget/maxUnavailable'"},
		{"minimal", "queue.auth=token", "at '/queue/auth': value must be one of"},
		{"minimal", "queue.replicas=6", "at '/queue/replicas': maximum: got 6, want 5"},
		{"minimal", "queue.addresses[0]=nats.example.org:4222", "at '/queue/addresses/0'"},
		{"minimal", "queue.addresses[0]=nats://user:secret@nats.example.org:4222", "at '/queue/addresses/0'"},
		{"minimal", "store.address=results", "at '/store/address'"},
		{"minimal", "store.address=s3://key:secret@results", "at '/store/address'"},
		{"minimal", "sources.allowNetworks[0]=10.0.0.1", "at '/sources/allowNetworks/0'"},
		{"minimal", "metrics.port=80", "at '/metrics/port': minimum: got 80, want 1,024"},
		{"minimal", "telemetry.protocol=http", "at '/telemetry/protocol': value must be one of"},
		{"minimal", "telemetry.endpoint=collector:4318", "at '/telemetry/endpoint'"},
		{"minimal", "fullnameOverride=Fleet", "at '/fullnameOverride'"},
		// Values that contradict each other.
		{"minimal", "store.address=", "store.address is missing; set it to s3://"},
		{"minimal", "store.address=/store", "store.address /store is a directory; set store.claim"},
		{"minimal", "store.claim=results", "store.claim needs a directory as store.address"},
		{"minimal", "queue.addresses=null", "queue.addresses is missing"},
		{"minimal", "queue.roles.coordinator.existingSecret=", "queue.roles.coordinator.existingSecret is missing; queue.auth=password needs it"},
		{"eks-spot", "queue.roles.worker.existingSecret=", "queue.roles.worker.existingSecret is missing; queue.auth=nkey needs it"},
		{"eks-spot", "api.adminToken.existingSecret=", "api.adminToken.existingSecret is missing; helm test needs it"},
		{"minimal", "api.ingress.enabled=true", "api.ingress.enabled needs api.host"},
		{"twenty-users", "networkPolicy.apiFrom=null", "networkPolicy.apiFrom is empty, so that the Ingress cannot reach the page"},
		{"twenty-users", "api.signIn.client=", "api.signIn.issuer needs api.signIn.client, api.signIn.roles, api.host"},
		{"twenty-users", "api.signIn.roles.imaging=owner", "at '/api/signIn/roles/imaging': value must be one of"},
		{"minimal", "notify.hosts[0]=hooks.example.org", "notify.secret.existingSecret is missing"},
		{"twenty-users", "costs.caps[0]=100", "at '/costs/caps/0'"},
		{"minimal", "worker.terminationGracePeriodSeconds=25", "pool default: terminationGracePeriodSeconds is 25; graceSeconds=25 needs at least 30"},
		{"minimal", "worker.graceSeconds=41", "pool default: terminationGracePeriodSeconds is 45; graceSeconds=41 needs at least 46"},
		{"minimal", "worker.maxUnavailable=0", "pool default: maxSurge and maxUnavailable are both 0"},
		{"pools", "workers[1].graceSeconds=90", "pool mig: terminationGracePeriodSeconds is 45; graceSeconds=90 needs at least 95"},
		{"pools", "workers[1].name=a100", "two pools of `workers` have the name a100"},
		{"pools", "workers[0].serviceAccount.create=false", "the pool a100 has a serviceAccount; all pools share worker.serviceAccount"},
		{"minimal", "worker.name=a100", "worker.name is a100; `worker` has what all pools share"},
		{"pools", "coordinator.replicas=0", "pool a100: coordinator.replicas is 0; set coordinator.service"},
		{"pools", "coordinator.replicas=0,coordinator.service=fleet-coordinator.other", "metrics.cluster is missing; with coordinator.replicas=0"},
		{"pools", "coordinator.service=fleet-coordinator.other", "coordinator.service is fleet-coordinator.other, the coordinators of another release"},
		{"minimal", "metrics.port=8081", "probes.port 8081, metrics.port 8081 and api.port 8620 are not different"},
		{"minimal", "metrics.enabled=false,metrics.podMonitor.enabled=true", "metrics.serviceMonitor and metrics.podMonitor need metrics.enabled=true"},
		{"eks-spot", "metrics.enabled=false", "pool default: kind=ScaledObject needs metrics.enabled=true"},
		{"eks-spot", "worker.scaling.min=40", "pool default: scaling.min is 40, more than scaling.max=32"},
		{"eks-spot", "worker.scaling.min=1,worker.scaling.scaleIn=whenIdle", "pool default: scaling.min is 1: with scaleIn=whenIdle"},
		{"eks-spot", "worker.scaling.trigger=prometheus", "pool default: scaling.prometheus.serverAddress is missing"},
		{"gke-spot", "worker.scaling.min=1", "pool default: scaling.min is 1: jobs end themselves"},
		{"gke-spot", "worker.podDisruptionBudget.enabled=true", "pool default: podDisruptionBudget does not apply to jobs"},
		{"gke-spot", "networkPolicy.metricsFrom=null", "networkPolicy.metricsFrom is empty, so that Prometheus cannot read the metrics"},
		{"minimal", "metrics.podMonitor.enabled=true", "networkPolicy.metricsFrom is empty, so that Prometheus cannot read the metrics"},
		{"kind", "queue.auth=none", "queue.auth is none; the NATS servers of the chart know users with passwords"},
		{"kind", "queue.tls.enabled=true", "queue.tls.enabled is true, but the NATS servers of the chart have no certificate; set nats.config.nats.tls"},
		{"kind", "queue.replicas=3", "queue.replicas is 3, but the chart starts one NATS server"},
		{"bare-metal", "queue.replicas=5", "queue.replicas is 5, more than the 3 NATS servers of the chart"},
		{"bare-metal", "queue.roles.worker.existingSecret=other", "queue.roles.worker.existingSecret is other, but nats.container.env names ddiff-worker"},
	} {
		t.Run(test.set, func(t *testing.T) {
			values := example(t, test.file)
			must(t, strvals.ParseInto(test.set, values))
			_, err := render(loadChart(t), values)
			if err == nil {
				t.Fatal("accepted")
			}
			var found []string
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if strings.Contains(line, test.want) {
					found = append(found, line)
				} else if strings.HasPrefix(line, "- at '") {
					t.Errorf("a second complaint: %s", line)
				}
			}
			if len(found) != 1 {
				t.Errorf("%d lines contain %q: %v", len(found), test.want, err)
			}
		})
	}
}

// The defaults themselves pass the schema: only the store and the queue are missing.
func TestDefaultValues(t *testing.T) {
	c := loadChart(t)
	values, err := chartutil.CoalesceValues(c, map[string]any{})
	must(t, err)
	if err := chartutil.ValidateAgainstSchema(c, values); err != nil {
		t.Error(err)
	}
}

// A value that is set to null, as people delete one of the chart's defaults, is either not needed or refused by its name.
func TestDeletedValues(t *testing.T) {
	t.Parallel()
	var visit func(prefix string, values map[string]any)
	visit = func(prefix string, values map[string]any) {
		for name, value := range values {
			path := prefix + name
			inner, ok := value.(map[string]any)
			if !ok {
				continue
			}
			visit(path+".", inner)
			for _, file := range examples(t) {
				deleted := example(t, file)
				must(t, strvals.ParseInto(path+"=null", deleted))
				if _, err := render(loadChart(t), deleted); err != nil && (strings.Contains(err.Error(), "error calling") || strings.Contains(err.Error(), "nil pointer")) {
					t.Errorf("%s: %s: %v", file, path, err)
				}
			}
		}
	}
	visit("", loadChart(t).Values)
}
