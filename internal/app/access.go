package app

import (
	"crypto/tls"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"sync/atomic"

	"cellserver/internal/app/settings"
	"cellserver/internal/edge/door"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// protectedMode is the error reply of protected mode. Clients recognize the start, which is Redis's.
const protectedMode = "DENIED cellserver is running in protected mode because protected mode is enabled and no password is set " +
	"for the default user. In this mode connections are only accepted from the loopback interface. To let other hosts in, " +
	"set a password with --requirepass-file, or give --protected-mode=no where only hosts that may use it " +
	"can reach the port. To serve this host alone, have it bind to loopback: --addr 127.0.0.1:6380."

// access decides who may use the server. It is safe for concurrent use.
type access struct {
	users         *acl.Users
	password      atomic.Pointer[string] // last set for the default user
	protectedMode atomic.Bool
}

func newAccess(o *settings.Options, cat *catalog.Catalog) *access {
	a := &access{users: acl.NewUsers(cat.ForRules())}
	a.setPassword(o.RequirePass)
	a.protectedMode.Store(o.ProtectedMode)
	return a
}

func (a *access) setPassword(password string) {
	a.password.Store(&password)
	a.users.SetDefaultPassword(password)
}

// reloadPassword applies a changed setting, and reports whether it counts.
func (a *access) reloadPassword(password string) bool {
	a.password.Store(&password)
	a.users.SetPasswordWithoutFile(password)
	return !a.users.DefaultInFile()
}

// warnOfUsers warns of settings that the users of --aclfile leave without effect.
func (a *access) warnOfUsers(tokens *door.Tokens, log *slog.Logger) {
	if *a.password.Load() != "" && a.users.DefaultInFile() {
		log.Warn("the password of requirepass is ignored, as in Redis: --aclfile has a user default",
			"hint", "write the password into the line of user default, or remove --requirepass-file")
	}
	for _, name := range tokens.Users() {
		if user := a.users.Lookup(name); user == nil || !user.Enabled() {
			log.Warn("a token of --http-tokens-file is refused: its user does not exist or is off", "user", name,
				"hint", "add it to --aclfile, and send SIGHUP or ACL LOAD")
		}
	}
}

func (a *access) isOpen() bool {
	user := a.users.Default()
	return user.Enabled() && !user.NeedsPassword()
}

func (a *access) refusesOtherHosts() bool { return a.protectedMode.Load() && a.isOpen() }

// admit refuses other hosts in protected mode while no password is required.
func (a *app) admit(p peer.Peer) (refusal string) {
	if isLocal(p) || !a.access.refusesOtherHosts() {
		return ""
	}
	return protectedMode
}

func isLocal(p peer.Peer) bool {
	addr, err := netip.ParseAddrPort(p.Addr)
	return p.Unix || err == nil && addr.Addr().Unmap().IsLoopback()
}

// open returns the listeners over which other hosts reach a server that requires no password, by name.
func (a *app) open() map[string]net.Listener {
	if !a.access.isOpen() {
		return nil
	}
	l := a.listeners
	all := map[string]net.Listener{"tcp": l.TCP, "http": l.HTTP}
	hasAll := a.options.ClientAuth() != tls.RequireAndVerifyClientCert || a.access.refusesOtherHosts()
	if hasAll {
		all["tls"], all["https"] = l.TLS, l.HTTPTLS
	}
	if !a.options.Doors.Envoy.Ratelimit.On { // else protected mode is not for these; see warnOfRatelimit
		if all["grpc"] = l.GRPC; hasAll {
			all["grpcs"] = l.GRPCTLS
		}
	}
	maps.DeleteFunc(all, func(_ string, l net.Listener) bool { return !isOpenToOthers(l) })
	return all
}

func isOpenToOthers(l net.Listener) bool {
	if l == nil {
		return false
	}
	tcp, ok := l.Addr().(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

func (a *app) warnOfAccess() {
	warning := "other hosts can reach this server and it requires no password; set " + settings.EnvName("requirepass") +
		" or protect the port with a firewall"
	if a.access.refusesOtherHosts() {
		warning = "other hosts can reach this server but are refused because it has no password (protected mode); set " +
			settings.EnvName("requirepass") + ", or --protected-mode=no if a firewall protects the port"
	}
	for name, l := range a.open() {
		a.log.Warn(warning, name, l.Addr().String())
	}
	if a.options.Doors.Envoy.Ratelimit.On {
		a.warnOfRatelimit()
	}
}
