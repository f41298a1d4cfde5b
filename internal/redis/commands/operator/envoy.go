package operator

import (
	"strconv"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/wire/glob"
)

// maxTextBytes bounds a text that an xDS server or a network chooses.
const maxTextBytes = 4096

// envoy returns what is known of the limits for Envoy.
func (k handlers) envoy() envoyconfig.Status {
	if k.Envoy == nil {
		return envoyconfig.Status{}
	}
	return k.Envoy()
}

// envoyStatus is CL.ENVOY STATUS: a map with the fields that the source has.
func (k handlers) envoyStatus(c execute.Call, _ [][]byte) error {
	st, w := k.envoy(), c.Reply()
	const common, ofFiles, ofXDS = 3, 2, 9
	fields := common + [...]int{envoyconfig.Files: ofFiles, envoyconfig.XDS: ofXDS}[st.Source]
	w.Map(fields)
	w.Pair("source", st.Source.String())
	domains, limits := 0, 0
	if st.Rules != nil {
		domains, limits = len(st.Rules.Domains), st.Rules.Count()
	}
	number := func(name string, n int64) { w.BulkString(name); w.Int(n) }
	number("domains", int64(domains))
	number("rules", int64(limits))
	truth := func(name string, is bool) { w.BulkString(name); w.Bool(is) }
	switch st.Source {
	case envoyconfig.NoSource:
	case envoyconfig.Files:
		w.Pair("directory", st.From)
		truth("reload_failed", st.Failed)
	case envoyconfig.XDS:
		x := &st.XDS
		w.Pair("server", st.From)
		truth("connected", x.Connected)
		orNull(w, "version", oneLine(x.Version), x.Loaded)
		truth("stale", x.Stale)
		w.BulkString("since")
		if x.Loaded {
			w.Int(x.Since.Unix())
		} else {
			w.Null()
		}
		number("accepted", int64(x.Accepted))
		number("rejected", int64(x.Rejected))
		orNull(w, "last_refusal", oneLine(x.Refusal), x.Refusal != "")
		orNull(w, "last_failure", oneLine(x.Failure), x.Failure != "")
	}
	return nil
}

// oneLine returns the beginning of a text, escaped.
func oneLine(text string) string {
	return resp.PrintableN([]byte(text[:min(len(text), maxTextBytes)]), maxTextBytes)
}

// orNull replies a field's text, or null.
func orNull(w *resp.Writer, name, text string, known bool) {
	w.BulkString(name)
	if known {
		w.BulkString(text)
	} else {
		w.Null()
	}
}

// envoyLimits is CL.ENVOY LIMITS [domain] [CURSOR cursor].
func (k handlers) envoyLimits(c execute.Call, args [][]byte) error {
	rest, cursor := args[2:], uint64(0)
	if n := len(rest); n > 1 {
		if n > 3 || !glob.IsFolded(rest[n-2], "cursor") {
			return reply.ErrSyntax
		}
		var err error
		if cursor, err = strconv.ParseUint(string(rest[n-1]), 10, 64); err != nil {
			return reply.Error("ERR invalid cursor")
		}
		rest = rest[:n-2]
	}
	rules := k.envoy().Rules
	if rules == nil {
		rules = &envoyconfig.Rules{}
	}
	var of *envoyconfig.Domain
	if len(rest) > 0 {
		if of = rules.Domain(string(rest[0])); of == nil {
			return reply.Error("ERR no such domain '" + resp.Printable(rest[0]) + "'; CL.ENVOY LIMITS without one lists those of all")
		}
	}
	next, some, err := rules.Page(of, cursor)
	if err != nil {
		return reply.Error("ERR " + err.Error())
	}
	w := c.Reply()
	w.Array(2)
	w.BulkString(strconv.FormatUint(next, 10))
	w.Array(len(some))
	for i := range some {
		replyEnvoyLimit(w, &some[i])
	}
	return nil
}

func replyEnvoyLimit(w *resp.Writer, l *envoyconfig.Limit) {
	w.Map(7)
	w.Pair("domain", l.Name)
	w.Pair("descriptor", l.Path)
	orNull(w, "unit", l.Rate.Unit, !l.Rate.Unlimited)
	w.BulkString("requests_per_unit")
	if l.Rate.Unlimited {
		w.Null()
	} else {
		w.Int(int64(l.Rate.Count))
	}
	w.Pair("algorithm", l.Rate.Algorithm.String())
	orNull(w, "name", l.Rate.Name, l.Rate.Name != "")
	w.BulkString("flags")
	w.Strings(l.Flags())
}
