package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"cellserver/internal/app/settings"
	"cellserver/internal/base/certs"
	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/keep/replication"
	"cellserver/internal/store/gate"
	"cellserver/internal/store/replicas"
	"cellserver/internal/wire/peer"
)

// openReplication makes the server one that can lead and follow, unless the states are on other machines.
func (a *app) openReplication(clk replication.Clock) error {
	o := &a.options.Replication
	if a.options.IsRemote() {
		return nil
	}
	login, err := replicationLogin(o, a.log)
	if err != nil {
		return err
	}
	var listener net.Addr
	if l := a.listeners.TCP; l != nil {
		listener = l.Addr()
	} else if l := a.listeners.TLS; l != nil {
		listener = l.Addr()
	}
	config := replication.Config{
		Store: a.storage.Tables, Changes: a.storage.Changes, Gate: a.storage.Gate, Clock: clk,
		Definitions: limitsfile.Replicated{Registry: a.storage.Limits}, Dial: replication.Dialer(login),
		Announce: o.Announce(listener), KillClients: a.killClients, EndTurns: func() { a.engine.Queue.Interrupt() }, RunID: a.runID, Settings: o.Settings(), Log: a.log,
	}
	if a.storage.Keeper != nil { // a nil *Keeper would make the interface non-nil
		config.Dir, config.Disk = a.storage.Dir, a.storage.Keeper
	}
	a.replication = replication.New(config)
	a.storage.Stands = a.replication.KeepRole
	return nil
}

func replicationLogin(o *settings.ReplicationOptions, log *slog.Logger) (l replication.Login, err error) {
	l.User, l.Password = o.User, func() (string, error) { // at each connection, as it may have changed
		return settings.ReadSecret("--repl-password-file", o.PasswordFile, "the password", log)
	}
	if _, err := l.Password(); err != nil {
		return l, err
	}
	if !o.TLS {
		return l, nil
	}
	l.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLSCA != "" {
		if l.TLS.RootCAs, err = certs.Authorities(o.TLSCA); err != nil {
			return l, fmt.Errorf("--repl-tls-ca %w", err)
		}
	}
	if o.TLSCert != "" {
		if l.TLS.Certificates, err = certs.Pair(o.TLSCert, o.TLSKey); err != nil {
			return l, fmt.Errorf("--repl-tls-cert %w", err)
		}
	}
	return l, nil
}

// killClients closes the connections of RESP clients, which then find the new leader.
func (a *app) killClients() {
	for _, c := range a.engine.Clients.All(func(c *clients.Client) bool {
		info := c.Info()
		return info.Type() == clients.Normal && c.Peer.Door == peer.RESP
	}) {
		c.Conn.Kill()
	}
}

// replicate finds the role, lets clients in, and replicates until ctx ends.
func (a *app) replicate(ctx context.Context, start func(name string, part func() error)) error {
	if a.replication == nil {
		return a.letIn(ctx, start)
	}
	b := a.options.Replication.Beginning()
	b.HasStates, b.LatestNs = a.storage.Keys() > 0, a.storage.LatestNs()
	if a.storage.Keeper != nil {
		b.Found = a.storage.Keeper.Found()
	}
	if b.Peer != (replicas.Address{}) {
		a.setNotReady("waiting for the peer")
	}
	err := a.replication.Begin(ctx, b)
	a.storage.Gate.EndLoading()
	if err != nil {
		return err
	}
	if err := a.letIn(ctx, start); err != nil {
		return err
	}
	a.replication.Run(ctx)
	return nil
}

var errReplicaLags = errors.New("this replica is further behind its leader than --max-replica-lag")

func (a *app) replicaReady() error {
	maxLag := a.options.Replication.ReadyLag
	if a.replication == nil || maxLag == 0 {
		return nil
	}
	if st := a.replication.Status(); st.Role == replicas.Replica && st.LagNs > int64(maxLag) {
		return errReplicaLags
	}
	return nil
}

const errShuttingDown gate.Refusal = "READONLY the server is shutting down, and its replicas have everything; nothing was changed"

// drainReplicas refuses changes, and waits until replicas have what was changed before, for the bound of a
// planned change at most.
func (a *app) drainReplicas(ctx context.Context) {
	if a.replication == nil {
		return
	}
	st := a.replication.Status()
	if st.Role != replicas.Leader || len(st.Replicas) == 0 {
		return
	}
	a.engine.Queue.End() // its charges are returned
	a.storage.Gate.Close(gate.Ending, 0, errShuttingDown)
	done := make(chan struct{})
	a.replication.Wait(len(st.Replicas), func() { close(done) })
	ctx, cancel := context.WithTimeout(ctx, replicas.Bound(st.RoundTrip))
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
		a.log.Warn("not all replicas have the latest changes", "replicas", len(st.Replicas))
	}
}

// replicationStatus returns a function for the state of replication, or nil without any.
func (a *app) replicationStatus() func() replicas.Status {
	if a.replication == nil {
		return nil
	}
	return a.replication.Status
}
