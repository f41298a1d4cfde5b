package peer

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"cellserver/bench/internal/load"
)

// Nginx is the peer's name.
const Nginx = "nginx"

// nginxConfig has one process, whose CPU time is that of nginx. The check's headers are as in deploy/nginx.
const nginxConfig = `daemon off;
master_process off;
error_log stderr error;
pid %[1]s/nginx-%[2]d.pid;
events { worker_connections 1024; }
http {
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path %[1]s;
    proxy_temp_path %[1]s;
    fastcgi_temp_path %[1]s;
    uwsgi_temp_path %[1]s;
    scgi_temp_path %[1]s;
    upstream limiter {
        server %[3]s;
        keepalive 64;
        keepalive_requests 1000000000;
    }
    server {
        listen 127.0.0.1:%[2]d;
        location / {
            auth_request /limit;
            empty_gif;
        }
        location = /unlimited { empty_gif; }
        location = /limit {
            internal;
            proxy_method HEAD;
            proxy_http_version 1.1;
            proxy_pass_request_headers off;
            proxy_pass_request_body off;
            proxy_set_header Host localhost;
            proxy_set_header Connection "";
            proxy_pass http://limiter/v1/check/` + doorLimit + `?key=$arg_key&denied=403;
        }
    }
}
`

// Pages are a page of nginx that is limited by a key, and one about which it asks nobody.
func Pages() (limited, unlimited load.Command, err error) {
	if limited, err = CheckAt("/page?key=u:" + load.KeyMark); err != nil {
		return limited, unlimited, err
	}
	unlimited, err = CheckAt("/unlimited?key=u:" + load.KeyMark)
	return limited, unlimited, err
}

// StartNginx starts nginx with a limiter that each request is checked by.
func (k *Kit) StartNginx(ctx context.Context, limiter netip.AddrPort) (*Server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(k.dir, "nginx-"+strconv.Itoa(port)+".conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, nginxConfig, k.dir, port, limiter), 0o600); err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	return start(ctx, spec{name: Nginx, argv: []string{k.nginx, "-p", k.dir, "-e", "stderr", "-c", file}, port: port, dir: k.dir})
}

func (k *Kit) findNginx(ctx context.Context) {
	var err error
	if k.nginx, err = exec.LookPath("nginx"); err != nil {
		k.Missing[Nginx] = "apt-get install nginx"
		return
	}
	out, _ := exec.CommandContext(ctx, k.nginx, "-v").CombinedOutput()
	k.Versions[Nginx] = string(bytes.TrimSpace(out))
}
