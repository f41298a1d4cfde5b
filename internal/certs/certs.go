// Package certs keeps a server's side of TLS up to date: it reads the certificate, its key and the authorities of
// clients from files, and reads them again when they change. A Keeper is safe for concurrent use.
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
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Files is where the PEM files are, and what clients must show.
type Files struct {
	Flags     string // that name the files begin so, as in errors: "--tls" if empty
	Cert, Key string
	ClientCA  string // authorities whose certificates clients may show; empty for none
	Clients   tls.ClientAuthType
}

// lookInterval is how long a look at the files holds.
const lookInterval = 2 * time.Second

// Keeper holds what was read last and could be used.
type Keeper struct {
	files   Files
	now     func() time.Time
	log     *slog.Logger
	current atomic.Pointer[tls.Config] // what it points to never changes

	mu      sync.Mutex // guards all below
	looked  time.Time
	seen    contents
	problem string // what was logged last; empty while all is well
}

// contents is what stood in the files.
type contents struct{ cert, key, clientCA []byte }

func (c contents) equal(d contents) bool {
	return bytes.Equal(c.cert, d.cert) && bytes.Equal(c.key, d.key) && bytes.Equal(c.clientCA, d.clientCA)
}

// Open reads the files. An error names the flag and the file that is wrong. The clock is the wall clock, which the
// certificate's dates are held against.
func Open(files Files, now func() time.Time, log *slog.Logger) (*Keeper, error) {
	k := &Keeper{files: files, now: now, log: log, looked: now()}
	read, err := files.read()
	if err != nil {
		return nil, err
	}
	config, err := files.parse(read)
	if err != nil {
		return nil, err
	}
	k.seen = read
	k.current.Store(config)
	k.warnOfDates()
	return k, nil
}

// Config returns a configuration that gives each handshake what is in the files then. Sessions can be resumed across
// changes, for the tickets' keys are this configuration's; a client's certificate is then held against the
// authorities of now.
func (k *Keeper) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			k.look()
			return k.current.Load(), nil
		},
	}
}

// look reads the files again if that is due. One handshake does that; the others take what there is.
func (k *Keeper) look() {
	if !k.mu.TryLock() {
		return
	}
	defer k.mu.Unlock()
	if now := k.now(); now.Sub(k.looked) >= lookInterval {
		k.looked = now
		k.reloadLocked()
	}
}

// Reload reads the files now. What cannot be used is logged, and what was there before stays.
func (k *Keeper) Reload() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.looked = k.now()
	k.problem = "" // who asks wants to be told
	k.reloadLocked()
}

func (k *Keeper) reloadLocked() {
	read, err := k.files.read()
	switch {
	case err != nil:
		k.reportLocked(err)
		return
	case read.equal(k.seen):
		k.problem = ""
		return
	}
	config, err := k.files.parse(read)
	if err != nil {
		k.reportLocked(err)
		return
	}
	k.seen, k.problem = read, ""
	k.current.Store(config)
	k.log.Info("new TLS files are in use", "certificate", k.files.Cert, "not_after", k.leaf().NotAfter)
	k.warnOfDates()
}

// reportLocked logs a problem once for as long as it stays the same.
func (k *Keeper) reportLocked(err error) {
	if k.problem == err.Error() {
		return
	}
	k.problem = err.Error()
	k.log.Error("the changed TLS files cannot be used; those read before stay in use", "error", err,
		"hint", "correct them: they are read again as clients come, and at SIGHUP")
}

func (k *Keeper) leaf() *x509.Certificate { return k.current.Load().Certificates[0].Leaf }

func (k *Keeper) warnOfDates() {
	leaf, now := k.leaf(), k.now()
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		k.log.Warn("the TLS certificate is out of its dates; clients will refuse it", "certificate", k.files.Cert,
			"not_before", leaf.NotBefore, "not_after", leaf.NotAfter)
	}
}

func (f Files) flag(name string) string { return cmp.Or(f.Flags, "--tls") + "-" + name }

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
		if *one.into, err = os.ReadFile(one.path); err != nil {
			var path *os.PathError
			if errors.As(err, &path) {
				err = path.Err // without the path, which is said already
			}
			return c, fmt.Errorf("certs: read %s %s: %w", f.flag(one.flag), one.path, err)
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
		// Replies are written whole, so small first records would only be more of them.
		DynamicRecordSizingDisabled: true,
	}
	if f.ClientCA == "" {
		return config, nil
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(c.clientCA) {
		return nil, fmt.Errorf("certs: parse %s %s: no certificate in it; it must be a PEM file", f.flag("client-ca"), f.ClientCA)
	}
	return config, nil
}

func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "tls: "), "\n", " ")
}
