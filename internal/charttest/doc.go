// Package charttest tests the Helm chart in charts/ddiff. It is a module of its own, so that the dependencies of Helm and of
// the Kubernetes client stay out of ddiff's. Its folder apiserver is another module: it pins the Kubernetes API server and
// etcd, which `make chart-test` builds.
//
// The package consists of tests. They render the chart with every values file of its examples, compare the objects with
// stored ones (-update writes them), and apply them to a real API server.
package charttest
