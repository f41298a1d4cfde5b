package dashboard

import (
	"fmt"

	g "maragu.dev/gomponents"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/resp"
)

// maxEnvoyText bounds a text that an xDS server or a network chooses.
const maxEnvoyText = 512

func envoyText(text string) string {
	return resp.PrintableN([]byte(text[:min(len(text), maxEnvoyText)]), maxEnvoyText)
}

// envoyPart tells where the limits for Envoy come from.
func (v *view) envoyPart() g.Node {
	st, t := v.envoy, v.t
	if st == nil {
		return nil
	}
	domains, limits := 0, 0
	if st.Rules != nil {
		domains, limits = len(st.Rules.Domains), st.Rules.Count()
	}
	source := [...]string{
		envoyconfig.NoSource: t.EnvoyNone, envoyconfig.Files: fmt.Sprintf(t.EnvoyFiles, st.From), envoyconfig.XDS: fmt.Sprintf(t.EnvoyXDS, st.From),
	}[st.Source]
	entries := []g.Node{
		entry(t.EnvoySource, source), entry(t.EnvoyDomains, words.Grouped(int64(domains))), entry(t.EnvoyRules, words.Grouped(int64(limits))),
	}
	if st.Source == envoyconfig.XDS {
		entries = append(entries, v.xdsEntries(&st.XDS)...)
	}
	return v.section("envoy", t.EnvoyHeading, list("list", entries...))
}

func (v *view) xdsEntries(x *envoyconfig.XDSStatus) []g.Node {
	t := v.t
	version, since, link := t.EnvoyNotLoaded, t.Never, t.LinkDown
	if x.Loaded {
		version, since = envoyText(x.Version), utc(x.Since.UnixNano())
	}
	if x.Stale {
		version = fmt.Sprintf(t.EnvoyKept, version)
	}
	if x.Connected {
		link = t.LinkConnected
	}
	return []g.Node{
		entry(t.EnvoyLink, link), entry(t.Version, version), entry(t.EnvoySince, since),
		entry(t.EnvoyAccepted, words.Grouped(int64(x.Accepted))), entry(t.EnvoyRejected, words.Grouped(int64(x.Rejected))),
	}
}

// envoyFaults returns that the xDS server is away, or that its limits were rejected.
func (v *view) envoyFaults() (all []fault) {
	t := v.t
	if v.envoy == nil || v.envoy.Source != envoyconfig.XDS {
		return nil
	}
	x := &v.envoy.XDS
	away, rejected := t.XDSAwayMeans, t.XDSRejectedMeans
	switch {
	case !x.Loaded:
		away, rejected = t.XDSNone, t.XDSNone
	case x.Stale:
		away = t.XDSAwayStale
	}
	if !x.Connected {
		all = append(all, fault{alarm: xdsDisconnected, what: t.XDSAway, meaning: away, cause: envoyText(x.Failure), todo: t.XDSAwayDo})
	}
	if x.Refusal != "" {
		all = append(all, fault{alarm: xdsRejected, what: t.XDSRejected, meaning: rejected, cause: envoyText(x.Refusal), todo: t.XDSRejectedDo})
	}
	return all
}
