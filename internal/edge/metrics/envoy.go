package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"cellserver/internal/decide/envoyconfig"
)

// maxVersionBytes bounds a label that an xDS server chooses.
const maxVersionBytes = 64

// envoyLimits sends what is known of the limits for Envoy, and of where they come from.
func (to sink) envoyLimits(st envoyconfig.Status) {
	domains, limits := 0, 0
	if st.Rules != nil {
		domains, limits = len(st.Rules.Domains), st.Rules.Count()
	}
	to.gauge("envoy_domains", "Domains with limits for Envoy.", domains)
	to.gauge("envoy_rules", "Limits for Envoy: descriptors with a rate_limit.", limits)
	to.truth("envoy_config_reload_failed", "1 if the last reload of --envoy-config failed and the previous rules are in use.", st.Failed)
	if st.Source == envoyconfig.XDS {
		to.xds(&st.XDS)
	}
}

func (to sink) xds(x *envoyconfig.XDSStatus) {
	to.truth("envoy_xds_connected", "1 while a stream to the server of --envoy-xds is open.", x.Connected)
	to.truth("envoy_xds_stale", "1 while the limits are those that an earlier process has kept, and the server has not been heard.", x.Stale)
	to.truth("envoy_xds_last_rejected", "1 if the server's latest limits were rejected and the previous ones are in use.", x.Refusal != "")
	to.counter("envoy_xds_accepted_total", "Versions of limits that were accepted from the server of --envoy-xds.", x.Accepted)
	to.counter("envoy_xds_rejected_total", "Answers of the server of --envoy-xds that were rejected; one that it repeats counts again.", x.Rejected)
	to.counter("envoy_xds_unkept_total", "Versions of limits that are used but that the disk of --data-dir has not taken in time for another start.", x.Unkept)
	if x.Loaded {
		version := desc("envoy_xds_version_info", "Always 1; the label gives the version of the limits in use, at most 64 bytes of it.", "version")
		text := x.Version[:min(len(x.Version), maxVersionBytes)]
		to.series(version, prometheus.GaugeValue, 1, strings.ToValidUTF8(text, "\uFFFD"))
	}
}
