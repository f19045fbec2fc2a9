// An agent for the tests: the client with which Elastic Agent 7.17 enrols, checks in and acknowledges.
//
//	agent enroll URL TOKEN          prints what it got as a line of JSON
//	agent run URL ID API_KEY COUNT  checks in until it has got so many actions, prints and acknowledges each
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/elastic/beats/v7/x-pack/elastic-agent/pkg/agent/application/info"
	"github.com/elastic/beats/v7/x-pack/elastic-agent/pkg/core/logger"
	"github.com/elastic/beats/v7/x-pack/elastic-agent/pkg/fleetapi"
	"github.com/elastic/beats/v7/x-pack/elastic-agent/pkg/fleetapi/client"
	"github.com/elastic/beats/v7/x-pack/elastic-agent/pkg/remote"
)

type agent string

func (id agent) AgentID() string { return string(id) }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("agent enroll URL TOKEN, or agent run URL ID API_KEY COUNT")
	}
	log, err := logger.New("fleet", false)
	if err != nil {
		return err
	}
	config, err := remote.NewConfigFromURL(args[1])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if args[0] == "enroll" {
		return enroll(ctx, log, config, args[2])
	}
	count, err := strconv.Atoi(args[4])
	if err != nil {
		return err
	}
	sender, err := client.NewAuthWithConfig(log, args[3], config)
	if err != nil {
		return err
	}
	return work(ctx, sender, agent(args[2]), count)
}

func enroll(ctx context.Context, log *logger.Logger, config remote.Config, token string) error {
	sender, err := client.NewWithConfig(log, config)
	if err != nil {
		return err
	}
	metadata := &info.ECSMeta{Host: &info.HostECSMeta{Hostname: "a-host"}}
	request := &fleetapi.EnrollRequest{
		EnrollAPIKey: token,
		Type:         fleetapi.PermanentEnroll,
		Metadata:     fleetapi.Metadata{Local: metadata, UserProvided: map[string]interface{}{"rack": "7"}},
	}
	response, err := fleetapi.NewEnrollCmd(sender).Execute(ctx, request)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(response.Item)
}

// Checks in again and again, as the agent does, until it has acknowledged so many actions.
func work(ctx context.Context, sender client.Sender, id agent, count int) error {
	token := ""
	for done := 0; done < count; {
		request := &fleetapi.CheckinRequest{Status: "online", AckToken: token}
		response, err := fleetapi.NewCheckinCmd(id, sender).Execute(ctx, request)
		if err != nil {
			return err
		}
		token = response.AckToken
		for _, action := range response.Actions {
			line := map[string]interface{}{"id": action.ID(), "type": action.Type()}
			if change, ok := action.(*fleetapi.ActionPolicyChange); ok {
				line["policy"] = change.Policy
			}
			if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
				return err
			}
			event := fleetapi.AckEvent{
				EventType: "ACTION_RESULT",
				SubType:   "ACKNOWLEDGED",
				Timestamp: time.Now().Format(time.RFC3339Nano),
				ActionID:  action.ID(),
				AgentID:   string(id),
				Message:   "done",
			}
			request := &fleetapi.AckRequest{Events: []fleetapi.AckEvent{event}}
			if _, err := fleetapi.NewAckCmd(id, sender).Execute(ctx, request); err != nil {
				return err
			}
			done++
		}
	}
	return nil
}
