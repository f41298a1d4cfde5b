package app

import (
	"net"
	"os"
	"runtime/metrics"
	"strconv"
	"strings"

	"cellserver/docs"
	"cellserver/internal/base/buildinfo"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/topkeys"
	"cellserver/internal/edge/dashboard"
	"cellserver/internal/edge/dashboard/actions"
	"cellserver/internal/edge/dashboard/ask"
	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/store"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// newPage returns the live page, which is empty before its Run.
func (a *app) newPage(actions *actions.Handler) *dashboard.Page {
	return dashboard.New(dashboard.Source{
		Source: ask.Source{
			Now:         a.now,
			State:       a.storage.Store.State,
			Limits:      a.storage.Limits.All,
			Calendars:   a.storage.Limits.Calendars(),
			Reading:     a.options.Reading(),
			Databases:   a.options.Databases,
			MaxKeyBytes: a.options.MaxKeyBytes,
		},
		Version: buildinfo.Version,
		Facts:   a.facts(),
		Sample:  a.sample,
		Refused: a.refusals,
		Overrides: func(limit string) ([]namedlimit.KeyOverride, []namedlimit.Override) {
			_, byCommand := a.storage.Limits.Overrides(limit, 0)
			_, byFile, _ := a.storage.Limits.FileOverrides(limit, 0) // fails for later cursors only
			return byCommand, byFile
		},
		Spent:       a.storage.Spent,
		Doors:       a.doors.Stats(),
		Persistence: a.storage.Persistence(),
		Remote:      a.storage.RemoteStatus(),
		Replication: a.replicationStatus(),
		EnvoyLimits: a.envoyLimits(),
		Actions:     actions,
		Runbook:     docs.Runbook(),
		Latency:     a.engine.Records.ThrottleDurations,
		Top:         a.topKeys,
	})
}

// envoyLimits returns a function that tells what limits for Envoy there are, nil without a door for it.
func (a *app) envoyLimits() func() envoyconfig.Status {
	if a.doors.envoy == nil {
		return nil
	}
	return a.rules.Limits
}

func (a *app) topKeys(kind topkeys.Ranking, n int) []topkeys.Entry {
	return a.engine.Records.TopKeys.Top(kind, a.now(), n)
}

func (a *app) newActions() *actions.Handler {
	if !a.options.PageActions {
		return nil
	}
	return actions.New(actions.Config{
		NewSession: func(p peer.Peer, c peer.Conn, user *acl.User) actions.Session {
			return a.engine.NewSessionAs(p, c, user)
		},
		Users:       a.access.users,
		Limit:       a.storage.Limits.Lookup,
		Reading:     a.options.Reading(),
		Databases:   a.options.Databases,
		MaxKeyBytes: a.options.MaxKeyBytes,
		Now:         a.now,
		Log:         newAudit(a.options, a.lines),
	})
}

// facts returns the page's text about the server.
func (a *app) facts() func() dashboard.Facts {
	f := dashboard.Facts{StartedNs: a.now(), Revision: buildinfo.Read().Revision}
	f.Host, _ = os.Hostname()
	if a.storage.Remote != nil {
		f.Store = a.storage.Remote.Pool.String()
	}
	f.Client = a.clientCommand()
	return func() dashboard.Facts {
		now := f
		for name, l := range a.listeners.All() {
			if l != a.listeners.Metrics {
				now.Listens = append(now.Listens, dashboard.Listener{Name: name, Addr: l.Addr().String()})
			}
		}
		now.Warnings = a.warnings()
		return now
	}
}

// warnings returns the log's warnings of access as they apply now.
func (a *app) warnings() (all []dashboard.Warning) {
	switch {
	case len(a.open()) == 0:
	case a.access.refusesOtherHosts():
		all = append(all, dashboard.RefusesHosts)
	default:
		all = append(all, dashboard.NoPassword)
	}
	switch {
	case !isOpenToOthers(a.listeners.Metrics):
	case a.web.Access.IsOpen():
		all = append(all, dashboard.OpenPage)
	case a.web.Certs == nil:
		all = append(all, dashboard.UnencryptedPage)
	}
	return all
}

// clientCommand returns the redis-cli call that connects from this host.
func (a *app) clientCommand() string {
	l, call := a.listeners.TCP, "redis-cli"
	switch {
	case l == nil && a.listeners.TLS != nil:
		l, call = a.listeners.TLS, "redis-cli --tls --insecure"
	case l == nil && a.listeners.Unix != nil:
		call += " -s " + a.listeners.Unix.Addr().String()
	}
	if l != nil {
		addr := l.Addr().(*net.TCPAddr)
		if !addr.IP.IsUnspecified() && !addr.IP.Equal(net.IPv4(127, 0, 0, 1)) {
			call += " -h " + addr.IP.String()
		}
		call += " -p " + strconv.Itoa(addr.Port)
	}
	if !a.access.isOpen() {
		call += " --askpass"
	}
	return call
}

func (a *app) sample() history.Sample {
	var st store.Stats
	a.storage.Store.UpdateStats(&st)
	server, records := a.server.Stats(), a.engine.Records
	errorReplies := records.Errors.Counts()
	sample := history.Sample{
		Allowed:            st.Allowed,
		Limited:            st.Limited,
		Outcomes:           st.Outcomes,
		Connections:        server.Connected,
		MaxConnections:     a.server.Limits().MaxClients,
		Keys:               st.Keys,
		MemoryBytes:        heldBytes(),
		MaxMemoryBytes:     uint64(a.storage.Memory.State().MaxBytes),
		TableBytes:         uint64(st.Bytes),
		MaxTableBytes:      uint64(st.MaxBytes),
		ClientBytes:        uint64(a.engine.Clients.Memory()),
		MaxClientBytes:     uint64(a.engine.Clients.MaxMemory()),
		Evicted:            st.Evicted,
		Refused:            st.Refused,
		Values:             st.Values,
		Errors:             errorReplies.Ever,
		OwnErrors:          errorReplies.Owned,
		LastError:          records.Errors.Last(),
		ConnectionsRefused: server.Refused + server.RefusedAddresses + server.Denied,
		NewKeysRefused:     a.engine.NewKeys.Refused(),
		ScriptsEnded:       records.ScriptsEnded(),
		LogLinesLost:       a.lines.Dropped() + records.ScriptLinesLeftOut(),
		Panics:             server.Panics,
		FilesRefused:       a.storage.Limits.Reloads().LastFailed || a.rules.Limits().Failed,
	}
	sample.WrongPasswords, _ = a.engine.Logins.Total()
	a.sampleStorage(&sample)
	return sample
}

// sampleStorage adds the figures of replicas, of a store on other machines and of the disk.
func (a *app) sampleStorage(sample *history.Sample) {
	if replication := a.replicationStatus(); replication != nil {
		n := replication().Counts
		sample.HandoversTimedOut, sample.ChangesRefused = n.HandoverTimeouts+n.HandoverFailures, n.RefusedWithout
	}
	if a.storage.Remote != nil {
		figures := a.storage.Remote.Stats()
		sample.Keys = a.storage.Remote.Health.Keys()
		sample.ByPolicy, sample.Prefiltered, sample.StoreRequests = figures.ByPolicy(), figures.Prefiltered, figures.Requests
		for _, s := range figures.Servers {
			sample.RoundTripNs = max(sample.RoundTripNs, s.RoundTripNs)
		}
	}
	if persistence := a.storage.Persistence(); persistence != nil {
		st := persistence()
		sample.WrittenBytes, sample.SyncNs = st.WrittenBytes, st.LastSyncTookNs
	}
}

// refusals returns the refused commands with the errors that clients got.
func (a *app) refusals() (all []dashboard.Refusal) {
	for _, c := range a.engine.Records.Refused() {
		r := dashboard.Refusal{Calls: uint64(c.Rejected)}
		if c.Command != nil {
			r.Command, r.Reason = strings.ToUpper(strings.ReplaceAll(c.Command.FullName(), "|", " ")), c.Command.Refusal
		}
		all = append(all, r)
	}
	return all
}

// heldBytes returns the memory that the runtime holds from the system.
func heldBytes() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
