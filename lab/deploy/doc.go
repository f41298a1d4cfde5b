// Package deploytest tests deploy/: promtool, systemd, Compose's loader and Kubernetes's validation accept
// the files, the files agree with each other and with the server, and a real Prometheus fires the alerts.
package deploytest
