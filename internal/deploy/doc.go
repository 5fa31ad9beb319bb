// Package deploy tests what runs ddiff without Kubernetes: compose.yaml, the configuration files in deploy/compose, the systemd
// units in deploy/systemd, and the archives of scripts/release.sh. It is a module of its own, so that the compose
// specification's loader and the libraries of command release stay out of ddiff's dependencies.
//
// The package consists of tests; `make deploy-test` runs all of them, and `make test` those that need a few seconds.
package deploy
