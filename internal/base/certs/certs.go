// Package certs provides a server's TLS configuration: it reads the certificate, its key and the authorities
// of client certificates from files, and reloads them when they change. A Keeper is safe for concurrent use.
package certs

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/internal/base/smallfile"
)

// Files holds the paths of the PEM files, and the policy for client certificates.
type Files struct {
	Flags      string // prefix of the flags in errors: "--tls" if empty
	Cert, Key  string
	ClientCA   string // authorities of client certificates; empty for none
	ClientName string // DNS name that a client certificate must have; empty for any
	Clients    tls.ClientAuthType

	Variables *Variables // in errors in place of the flags
}

// Variables are the environment variables of files.
type Variables struct{ Cert, Key, ClientCA string }

const checkInterval = 2 * time.Second

// Keeper holds the last valid files.
type Keeper struct {
	files   Files
	now     func() time.Time
	log     *slog.Logger
	current atomic.Pointer[tls.Config] // never modified, only replaced

	mu      sync.Mutex // rank 90: guards the fields below
	checked time.Time
	seen    contents
	problem string // last logged error, or empty
}

type contents struct{ cert, key, clientCA []byte }

func (c contents) equal(d contents) bool {
	return bytes.Equal(c.cert, d.cert) && bytes.Equal(c.key, d.key) && bytes.Equal(c.clientCA, d.clientCA)
}

// Open reads the files. An error names the flag and the file. now is the wall clock, compared with the
// certificate's dates.
func Open(files Files, now func() time.Time, log *slog.Logger) (*Keeper, error) {
	k := &Keeper{files: files, now: now, log: log, checked: now()}
	if _, err := k.loadLocked(); err != nil {
		return nil, err
	}
	k.warnOfDates()
	return k, nil
}

// Config returns a configuration that uses the current files for each handshake, and offers protocols. It
// owns the ticket keys, so sessions can be resumed across changes; client certificates are verified with the
// current authorities.
func (k *Keeper) Config(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			k.check()
			current := k.current.Load()
			if len(protocols) > 0 {
				current = current.Clone()
				current.NextProtos = protocols
			}
			return current, nil
		},
	}
}

// check reloads the files when due, in one handshake; others do not wait.
func (k *Keeper) check() {
	if !k.mu.TryLock() {
		return
	}
	defer k.mu.Unlock()
	if now := k.now(); now.Sub(k.checked) >= checkInterval {
		k.checked = now
		k.reloadLocked()
	}
}

// Reload reloads the files now. Invalid files are logged, and the previous contents stay in use.
func (k *Keeper) Reload() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.checked = k.now()
	k.problem = "" // report the same problem again
	k.reloadLocked()
}

func (k *Keeper) reloadLocked() {
	changed, err := k.loadLocked()
	if err != nil {
		k.reportLocked(err)
		return
	}
	k.problem = ""
	if changed {
		k.log.Info("using new TLS files", "certificate", k.files.Cert, "not_after", k.leaf().NotAfter)
		k.warnOfDates()
	}
}

// loadLocked uses the files as they are now, and reports whether they have changed.
func (k *Keeper) loadLocked() (changed bool, err error) {
	read, err := k.files.read()
	if err != nil || k.current.Load() != nil && read.equal(k.seen) {
		return false, err
	}
	config, err := k.files.parse(read)
	if err != nil {
		return false, err
	}
	k.seen = read
	k.current.Store(config)
	return true, nil
}

// reportLocked logs a problem once.
func (k *Keeper) reportLocked(err error) {
	if k.problem == err.Error() {
		return
	}
	k.problem = err.Error()
	k.log.Error("cannot use the changed TLS files; the previous ones stay in use", "error", err,
		"hint", "correct the files; they are reloaded at the next handshakes and at SIGHUP")
}

func (k *Keeper) leaf() *x509.Certificate { return k.current.Load().Certificates[0].Leaf }

func (k *Keeper) warnOfDates() {
	leaf, now := k.leaf(), k.now()
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		k.log.Warn("the TLS certificate has expired or is not valid yet; clients will reject it", "certificate", k.files.Cert,
			"not_before", leaf.NotBefore, "not_after", leaf.NotAfter)
	}
}

func (f Files) flag(name string) string {
	switch v := f.Variables; {
	case v == nil:
		return cmp.Or(f.Flags, "--tls") + "-" + name
	case name == "cert":
		return v.Cert
	case name == "key":
		return v.Key
	default:
		return v.ClientCA
	}
}

func (f Files) read() (c contents, err error) {
	for _, one := range []struct {
		flag, path string
		into       *[]byte
	}{
		{"cert", f.Cert, &c.cert}, {"key", f.Key, &c.key}, {"client-ca", f.ClientCA, &c.clientCA},
	} {
		if one.path == "" && one.into == &c.clientCA {
			continue
		}
		if *one.into, err = smallfile.Read(one.path); err != nil {
			return c, fmt.Errorf("certs: read %s %s: %w", f.flag(one.flag), one.path, smallfile.Cause(err))
		}
	}
	return c, nil
}

func (f Files) parse(c contents) (*tls.Config, error) {
	if block, _ := pem.Decode(c.key); block != nil && (block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "") {
		return nil, fmt.Errorf("certs: parse %s %s: the key is encrypted; decrypt it with openssl pkey", f.flag("key"), f.Key)
	}
	pair, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("certs: parse %s %s and %s %s: %s", f.flag("cert"), f.Cert, f.flag("key"), f.Key, oneLine(err))
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		ClientAuth:   f.Clients,
		// Replies are written whole, so small initial records would add overhead.
		DynamicRecordSizingDisabled: true,
	}
	if f.ClientCA == "" {
		return config, nil
	}
	if f.ClientName != "" {
		config.VerifyConnection = f.verifyClient
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(c.clientCA) {
		return nil, fmt.Errorf("certs: parse %s %s: no certificate in it; it must be a PEM file", f.flag("client-ca"), f.ClientCA)
	}
	return config, nil
}

// verifyClient refuses a client whose certificate, which is verified, does not have the name. Resumed
// sessions call it, too.
func (f Files) verifyClient(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("certs: the client has no certificate")
	}
	return state.PeerCertificates[0].VerifyHostname(f.ClientName)
}

func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "tls: "), "\n", " ")
}
