// Command cert-manager runs the controllers and servers of cert-manager's packages. The Go modules
// of cert-manager's own programs are not published. The first argument selects what is run; the
// others are those that the chart passes. The issuers of ACME, Vault, and Venafi are left out.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// election has the options of leader election.
type election struct {
	namespace                             string
	leaseDuration, renewDeadline, retryIn time.Duration
}

func (e *election) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&e.namespace, "leader-election-namespace", "kube-system", "namespace of the Lease")
	flags.DurationVar(&e.leaseDuration, "leader-election-lease-duration", 60*time.Second, "duration of the Lease")
	flags.DurationVar(&e.renewDeadline, "leader-election-renew-deadline", 40*time.Second, "time in which the leader renews the Lease")
	flags.DurationVar(&e.retryIn, "leader-election-retry-period", 15*time.Second, "time between attempts")
}

// parse parses arguments, those of the logs included, and applies them.
func parse(flags *pflag.FlagSet, arguments []string, logging *logsapi.LoggingConfiguration) error {
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	return logf.ValidateAndApply(logging)
}

func main() {
	commands := map[string]func(context.Context, []string) error{
		"cainjector": runInjector,
		"check":      runCheck,
		"controller": runController,
		"webhook":    runWebhook,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: cert-manager cainjector|check|controller|webhook [OPTION…]")
		os.Exit(2)
	}
	logf.InitLogs()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	ctx = logf.NewContext(ctx, logf.Log, os.Args[1])
	err := commands[os.Args[1]](ctx, os.Args[2:])
	stop()
	logf.FlushLogs()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
