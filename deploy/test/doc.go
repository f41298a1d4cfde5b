// Package deploytest holds what is in deploy/: that promtool, systemd, Compose's loader and Kubernetes's own validation
// accept it, that its parts agree with each other and with the server, and that a real Prometheus raises its alerts.
package deploytest
