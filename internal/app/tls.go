package app

import (
	"log/slog"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/base/certs"
)

// openCerts reads the TLS files, if TLS is enabled.
func openCerts(o *settings.Options, log *slog.Logger) (*certs.Keeper, error) {
	if o.TLSAddr == "" {
		return nil, nil
	}
	return certs.Open(certs.Files{Cert: o.TLSCert, Key: o.TLSKey, ClientCA: o.TLSClientCA, Clients: o.ClientAuth()}, time.Now, log)
}
