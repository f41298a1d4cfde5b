package ratelimit

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/app/settings"
)

// pauses sets those before the client connects again, unless a variable has no time. There the retries of a
// call and those of a connection are apart.
func (t *translation) pauses(x *settings.XDSOptions) {
	if first := min(t.period("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL"), t.period("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL")); first > 0 {
		x.FirstPause = first
	}
	if longest := t.period("XDS_CLIENT_BACKOFF_MAX_INTERVAL"); longest > 0 {
		x.LongestPause = longest
	}
	x.LongestPause = max(x.FirstPause, x.LongestPause)
}

const xdsHeaders = "CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS"

func (t *translation) xds() {
	const server, metadata, size = "CONFIG_GRPC_XDS_SERVER_URL", "CONFIG_GRPC_XDS_NODE_METADATA", "XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES"
	t.set("envoy-xds", target(t.text(server)), server)
	t.set("envoy-xds-node-id", t.text("CONFIG_GRPC_XDS_NODE_ID"), "CONFIG_GRPC_XDS_NODE_ID")
	if list := t.metadata(metadata); list != "" {
		t.set("envoy-xds-node-metadata", list, metadata)
	}
	if given := t.pairs(xdsHeaders); len(given) > 0 {
		t.set("envoy-xds-headers", listOf(given), xdsHeaders)
	}
	if n := t.whole(size); n != 0 {
		t.set("envoy-xds-max-message-bytes", strconv.FormatInt(min(n, settings.MaxXDSMessageBytes), 10), size)
	}
	if !t.truth("CONFIG_GRPC_XDS_SERVER_USE_TLS") {
		return
	}
	t.set("envoy-xds-tls", "true", "CONFIG_GRPC_XDS_SERVER_USE_TLS")
	t.setGiven("envoy-xds-tls-ca", "CONFIG_GRPC_XDS_SERVER_TLS_CACERT")
	t.setGiven("envoy-xds-tls-name", "CONFIG_GRPC_XDS_SERVER_TLS_SAN")
	t.setPair("envoy-xds-tls-", "CONFIG_GRPC_XDS_CLIENT_TLS_")
}

// setGiven sets a setting to the text of a variable, unless that is empty.
func (t *translation) setGiven(flag, name string) {
	if given := t.text(name); given != "" {
		t.set(flag, given, name)
	}
}

// setPair sets a certificate and its key. As there, one without the other is none.
func (t *translation) setPair(flags, names string) {
	if t.text(names+"CERT") != "" && t.text(names+"KEY") != "" {
		t.setGiven(flags+"cert", names+"CERT")
		t.setGiven(flags+"key", names+"KEY")
	}
}

// target returns host:port of a target of grpc-go: [dns:///]host[:port], by default port 443.
func target(given string) string {
	for _, scheme := range []string{"dns", "passthrough"} {
		given = strings.TrimPrefix(strings.TrimPrefix(given, scheme+":///"), scheme+":")
	}
	if given == "" || strings.ContainsAny(given, "/") {
		return given // refused by the setting
	}
	if _, _, err := net.SplitHostPort(given); err != nil {
		return net.JoinHostPort(strings.Trim(given, "[]"), "443")
	}
	return given
}

// metadata returns what the node says of itself: NAME=TEXT; as there, entries without = are skipped.
func (t *translation) metadata(name string) string {
	given := map[string]string{}
	for one := range strings.SplitSeq(t.text(name), ",") {
		if key, value, ok := strings.Cut(one, "="); ok && key != "" {
			given[key] = value
		}
	}
	return listOf(given)
}

// listOf returns NAME=TEXT, separated by commas.
func listOf(all map[string]string) string {
	list := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return strings.Join(list, ",")
}
