package main

import (
	"log/slog"
	"time"

	"cellserver/internal/base/certs"
)

// openCerts reads the TLS files, if TLS is enabled.
func openCerts(o *options, log *slog.Logger) (*certs.Keeper, error) {
	if o.tlsAddr == "" {
		return nil, nil
	}
	return certs.Open(certs.Files{Cert: o.tlsCert, Key: o.tlsKey, ClientCA: o.tlsClientCA, Clients: o.clientAuth()}, time.Now, log)
}
