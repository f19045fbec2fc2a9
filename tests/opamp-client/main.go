// An agent with opamp-go's client, for the whole-program tests of OpAMP.
//
//	opamp-client URL UID TOKEN LABELS...
//
// By TLS it trusts the certificates in the file that the variable AUTHORITY names.
// It reports the labels as its identifying attributes, applies what it is sent, fails for a body that has "broken" in it, and prints a line
// of JSON for each thing that happens. It ends when its standard input does.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/open-telemetry/opamp-go/client"
	"github.com/open-telemetry/opamp-go/client/types"
	"github.com/open-telemetry/opamp-go/protobufs"
)

var output sync.Mutex

func say(event string, more map[string]any) {
	output.Lock()
	defer output.Unlock()
	line := map[string]any{"event": event}
	for name, value := range more {
		line[name] = value
	}
	_ = json.NewEncoder(os.Stdout).Encode(line)
}

func must(err error) {
	if err != nil {
		say("fatal", map[string]any{"error": err.Error()})
		os.Exit(1)
	}
}

type silent struct{}

func (silent) Debugf(context.Context, string, ...any) {}
func (silent) Errorf(context.Context, string, ...any) {}

func text(value string) *protobufs.AnyValue {
	return &protobufs.AnyValue{Value: &protobufs.AnyValue_StringValue{StringValue: value}}
}

func main() {
	url, uid, token, labels := os.Args[1], os.Args[2], os.Args[3], os.Args[4:]
	var agent client.OpAMPClient
	if strings.HasPrefix(url, "ws") {
		agent = client.NewWebSocket(silent{})
	} else {
		http := client.NewHTTP(silent{})
		http.SetPollingInterval(500 * time.Millisecond)
		agent = http
	}
	description := &protobufs.AgentDescription{}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		description.IdentifyingAttributes = append(description.IdentifyingAttributes, &protobufs.KeyValue{Key: key, Value: text(value)})
	}
	must(agent.SetAgentDescription(description))
	must(agent.SetHealth(&protobufs.ComponentHealth{Healthy: true, Status: "StatusOK"}))
	capabilities := protobufs.AgentCapabilities_AgentCapabilities_ReportsStatus |
		protobufs.AgentCapabilities_AgentCapabilities_AcceptsRemoteConfig |
		protobufs.AgentCapabilities_AgentCapabilities_ReportsRemoteConfig |
		protobufs.AgentCapabilities_AgentCapabilities_ReportsEffectiveConfig |
		protobufs.AgentCapabilities_AgentCapabilities_ReportsHealth |
		protobufs.AgentCapabilities_AgentCapabilities_ReportsOwnMetrics |
		protobufs.AgentCapabilities_AgentCapabilities_AcceptsRestartCommand
	must(agent.SetCapabilities(&capabilities))

	id := types.InstanceUid{}
	raw, err := hexBytes(uid)
	must(err)
	copy(id[:], raw)
	body := []byte("receivers: {}\nexporters:\n  otlp:\n    api_key: not-for-others\n")
	callbacks := types.Callbacks{
		OnConnect:       func(context.Context) { say("connected", nil) },
		OnConnectFailed: func(_ context.Context, err error) { say("refused", map[string]any{"error": err.Error()}) },
		OnError: func(_ context.Context, err *protobufs.ServerErrorResponse) {
			say("error", map[string]any{"error": err.ErrorMessage})
		},
		OnCommand: func(_ context.Context, command *protobufs.ServerToAgentCommand) error {
			say("command", map[string]any{"type": command.Type.String()})
			return nil
		},
		GetEffectiveConfig: func(context.Context) (*protobufs.EffectiveConfig, error) {
			return &protobufs.EffectiveConfig{ConfigMap: &protobufs.AgentConfigMap{
				ConfigMap: map[string]*protobufs.AgentConfigFile{"": {Body: body, ContentType: "text/yaml"}},
			}}, nil
		},
		OnMessage: func(ctx context.Context, message *types.MessageData) {
			if message.AgentIdentification != nil {
				say("renamed", nil)
			}
			if message.OwnMetricsConnSettings != nil {
				say("own_metrics", map[string]any{"url": message.OwnMetricsConnSettings.DestinationEndpoint})
			}
			if message.RemoteConfig == nil {
				return
			}
			file := message.RemoteConfig.Config.ConfigMap[""]
			say("config", map[string]any{"body": string(file.Body)})
			status := protobufs.RemoteConfigStatus{
				LastRemoteConfigHash: message.RemoteConfig.ConfigHash,
				Status:               protobufs.RemoteConfigStatuses_RemoteConfigStatuses_APPLIED,
			}
			if bytes.Contains(file.Body, []byte("broken")) {
				status.Status = protobufs.RemoteConfigStatuses_RemoteConfigStatuses_FAILED
				status.ErrorMessage = "this one is broken"
			} else {
				body = file.Body
			}
			must(agent.SetRemoteConfigStatus(&status))
			must(agent.UpdateEffectiveConfig(ctx))
		},
	}
	interval := time.Second
	settings := types.StartSettings{OpAMPServerURL: url, InstanceUid: id, Callbacks: callbacks, HeartbeatInterval: &interval, EnableCompression: true}
	settings.Header = http.Header{}
	if authority := os.Getenv("AUTHORITY"); authority != "" {
		certificates, err := os.ReadFile(authority)
		must(err)
		settings.TLSConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		settings.TLSConfig.RootCAs.AppendCertsFromPEM(certificates)
	}
	if token != "" {
		settings.Header.Set("Authorization", "Bearer "+token)
	}
	must(agent.Start(context.Background(), settings))
	_, _ = io.Copy(io.Discard, os.Stdin)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = agent.Stop(ctx)
}

func hexBytes(uid string) ([]byte, error) {
	return hex.DecodeString(strings.ReplaceAll(uid, "-", ""))
}
