package main

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"

	"cellserver/internal/acl"
	"cellserver/internal/catalog"
	"cellserver/internal/peer"
)

// word is a flag that is one of two words.
type word struct {
	on      *bool
	yes, no string
}

// Set implements pflag.Value.
func (w word) Set(s string) error {
	if s != w.yes && s != w.no {
		return errors.New("must be " + w.yes + " or " + w.no)
	}
	*w.on = s == w.yes
	return nil
}

// String implements pflag.Value.
func (w word) String() string {
	if *w.on {
		return w.yes
	}
	return w.no
}

// Type implements pflag.Value.
func (w word) Type() string { return w.yes + "|" + w.no }

// yesNo is a setting in Redis's words.
func yesNo(on bool) string { return word{&on, "yes", "no"}.String() }

// protectedMode is Redis's refusal, with what to do here. It begins with its words, which some clients look for.
const protectedMode = "DENIED cellserver is running in protected mode because protected mode is enabled and no password is set " +
	"for the default user. In this mode connections are only accepted from the loopback interface. To let other hosts in, " +
	"set a password with --requirepass or --requirepass-file, or give --protected-mode=no where only hosts that may use it " +
	"can reach the port. To serve this host alone, have it bind to loopback: --addr 127.0.0.1:6380."

// access is who may use the server. It is safe for concurrent use.
type access struct {
	users         *acl.Users
	password      atomic.Pointer[string] // of the default user, as it was set last
	protectedMode atomic.Bool
}

func newAccess(o *options, cat *catalog.Catalog) *access {
	a := &access{users: acl.NewUsers(cat.ForRules())}
	a.setPassword(o.requirePass)
	a.protectedMode.Store(o.protectedMode)
	return a
}

func (a *access) setPassword(password string) {
	a.password.Store(&password)
	a.users.SetDefaultPassword(password)
}

// isOpen reports whether anybody who connects may use the server.
func (a *access) isOpen() bool {
	user := a.users.Default()
	return user.Enabled() && !user.NeedsPassword()
}

func (a *access) refusesOtherHosts() bool { return a.protectedMode.Load() && a.isOpen() }

// admit refuses clients of other hosts for as long as anybody could use the server.
func (a *app) admit(p peer.Peer) (refusal string) {
	if isLocal(p) || !a.access.refusesOtherHosts() {
		return ""
	}
	return protectedMode
}

// mayDebug says whether a client may use DEBUG.
func (o *options) mayDebug(p peer.Peer) bool {
	return o.debugCommand == "yes" || o.debugCommand == "local" && isLocal(p)
}

// isLocal reports whether a client is on this host.
func isLocal(p peer.Peer) bool {
	addr, err := netip.ParseAddrPort(p.Addr)
	return p.Unix || err == nil && addr.Addr().Unmap().IsLoopback()
}

// warnOfOtherHosts says what is wrong with a port that other hosts can reach while there is no password.
func (a *app) warnOfOtherHosts(kind string, l net.Listener) {
	if l == nil || !a.access.isOpen() || l.Addr().(*net.TCPAddr).IP.IsLoopback() {
		return
	}
	if a.access.refusesOtherHosts() {
		a.log.Warn("other hosts can reach this server but are refused, for it has no password (protected mode); set "+
			envName("requirepass")+", or give --protected-mode=no where a firewall guards the port", kind, l.Addr().String())
		return
	}
	a.log.Warn("other hosts can reach this server and it asks for no password; set "+envName("requirepass")+
		" or keep the port behind a firewall", kind, l.Addr().String())
}

// readPassword reads --requirepass-file, if it is given.
func (o *options) readPassword(log *slog.Logger) error {
	if o.requirePassFile == "" {
		return nil
	}
	password, err := readSecret("--requirepass-file", o.requirePassFile, "the password", log)
	o.requirePass = password
	return err
}
