package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"
)

// tool is a program in a temporary folder, with a home folder of its own. Its default
// namespace is that of the test.
type tool struct {
	t           *testing.T
	at          fixture
	path        string
	folder      string
	environment []string
}

// find looks the program up in PATH.
func find(t *testing.T, at fixture, program string) tool {
	t.Helper()
	path, err := exec.LookPath(program)
	require(t, err == nil, "%s is not in PATH; `cargo xtask test --go` builds and adds it: %v", program, err)
	kubeconfig, err := filepath.Abs(os.Getenv("KUBECONFIG"))
	check(t, err)
	folder := t.TempDir()
	home := filepath.Join(folder, "home")
	check(t, os.Mkdir(home, 0o700))
	return tool{t, at, path, folder, []string{
		"PATH=" + os.Getenv("PATH"),
		"KUBECONFIG=" + kubeconfig,
		"HOME=" + home,
		"TMPDIR=" + home,
		"HELM_CACHE_HOME=" + filepath.Join(home, "cache"),
		"HELM_CONFIG_HOME=" + filepath.Join(home, "config"),
		"HELM_DATA_HOME=" + filepath.Join(home, "data"),
		"HELM_NAMESPACE=" + at.namespace,
	}}
}

// try runs the program and returns its standard output.
func (program tool) try(arguments ...string) (string, error) {
	command := exec.CommandContext(program.at.ctx, program.path, arguments...)
	command.Dir, command.Env = program.folder, program.environment
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		name := filepath.Base(program.path)
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(arguments, " "), err, &stdout, &stderr)
	}
	return stdout.String(), nil
}

// run does the same, and fails the test if the program fails.
func (program tool) run(arguments ...string) string {
	program.t.Helper()
	stdout, err := program.try(arguments...)
	check(program.t, err)
	return stdout
}

// read runs the program with the option "-o json" and parses its standard output.
func (program tool) read(into any, arguments ...string) {
	program.t.Helper()
	stdout := program.run(append(arguments, "-o", "json")...)
	check(program.t, json.Unmarshal([]byte(stdout), into))
}

// write creates a file in the program's folder.
func (program tool) write(name, text string) {
	program.t.Helper()
	path := filepath.Join(program.folder, name)
	check(program.t, os.MkdirAll(filepath.Dir(path), 0o700))
	check(program.t, os.WriteFile(path, []byte(strings.TrimLeft(text, "\n")), 0o600))
}

// Templates and a definition that are added to the chart that `helm create` creates.
const (
	accessTemplate = `
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "web.fullname" . }}-reader
  labels:
    {{- include "web.labels" . | nindent 4 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ include "web.fullname" . }}-reader
  labels:
    {{- include "web.labels" . | nindent 4 }}
rules:
  - apiGroups: [""]
    resources: [configmaps]
    verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ include "web.fullname" . }}-reader
  labels:
    {{- include "web.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "web.fullname" . }}-reader
subjects:
  - kind: ServiceAccount
    name: {{ include "web.fullname" . }}-reader
`
	settingsTemplate = `
{{- with .Values.settings }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "web.fullname" $ }}-settings
  labels:
    {{- include "web.labels" $ | nindent 4 }}
data:
  {{- toYaml . | nindent 2 }}
{{- end }}
`
	hookTemplate = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "web.fullname" . }}-hook
  labels:
    {{- include "web.labels" . | nindent 4 }}
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-weight: "-5"
data:
  revision: {{ .Release.Revision | quote }}
`
	boxTemplate = `
apiVersion: GROUP/v1
kind: Box
metadata:
  name: {{ include "web.fullname" . }}
  labels:
    {{- include "web.labels" . | nindent 4 }}
spec:
  size: {{ .Values.replicaCount }}
`
	definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: boxes.GROUP
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: boxes, singular: box, kind: Box}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                size: {type: integer}
`
)

// chart creates the chart "web", which defines a custom kind. It returns the resource of that
// kind, and the options for a first release.
func chart(helm tool) (schema.GroupVersionResource, []string) {
	helm.t.Helper()
	helm.run("create", "web")
	group := "g" + random() + ".conformance.example.com"
	helm.write("web/crds/boxes.yaml", strings.ReplaceAll(definition, "GROUP", group))
	helm.write("web/templates/access.yaml", accessTemplate)
	helm.write("web/templates/box.yaml", strings.ReplaceAll(boxTemplate, "GROUP", group))
	helm.write("web/templates/hook.yaml", hookTemplate)
	helm.write("web/templates/settings.yaml", settingsTemplate)
	definitions, err := apiextensions.NewForConfig(helm.at.config)
	check(helm.t, err)
	helm.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		err := definitions.ApiextensionsV1().CustomResourceDefinitions().Delete(ctx, "boxes."+group, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			helm.t.Errorf("the definition is not deleted: %v", err)
		}
	})
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "boxes"}
	// No node has this label, so that no node pulls the image.
	return resource, []string{"--set", "settings.color=blue,nodeSelector.node=none"}
}

// released names an object of a release.
type released struct {
	resource schema.GroupVersionResource
	name     string
}

// objects lists what a release of the chart "web" contains, the Deployment first.
func objects(boxes schema.GroupVersionResource, release string) []released {
	core := schema.GroupVersion{Version: "v1"}
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	return []released{
		{appsv1.SchemeGroupVersion.WithResource("deployments"), release + "-web"},
		{core.WithResource("services"), release + "-web"},
		{core.WithResource("serviceaccounts"), release + "-web"},
		{core.WithResource("serviceaccounts"), release + "-web-reader"},
		{rbac.WithResource("roles"), release + "-web-reader"},
		{rbac.WithResource("rolebindings"), release + "-web-reader"},
		{core.WithResource("configmaps"), release + "-web-settings"},
		{boxes, release + "-web"},
	}
}

// checkReleased requires that the objects exist, with the labels and annotations of the release,
// and that helm manages them.
func checkReleased(t *testing.T, at fixture, release string, objects []released, how metav1.ManagedFieldsOperationType) {
	t.Helper()
	client, err := dynamic.NewForConfig(at.config)
	check(t, err)
	for _, object := range objects {
		found, err := client.Resource(object.resource).Namespace(at.namespace).Get(at.ctx, object.name, metav1.GetOptions{})
		check(t, err)
		labels, annotations := found.GetLabels(), found.GetAnnotations()
		require(t, labels["app.kubernetes.io/managed-by"] == "Helm", "%v: %v", object, labels)
		require(t, labels["app.kubernetes.io/instance"] == release, "%v: %v", object, labels)
		require(t, labels["helm.sh/chart"] == "web-0.1.0", "%v: %v", object, labels)
		require(t, annotations["meta.helm.sh/release-name"] == release, "%v: %v", object, annotations)
		require(t, annotations["meta.helm.sh/release-namespace"] == at.namespace, "%v: %v", object, annotations)
		managed := false
		for _, entry := range found.GetManagedFields() {
			managed = managed || entry.Manager == "helm" && entry.Operation == how && entry.Subresource == ""
		}
		require(t, managed, "%v is not managed by helm: %v", object, found.GetManagedFields())
	}
}

// checkGone waits until the objects are deleted.
func checkGone(t *testing.T, at fixture, objects []released) {
	t.Helper()
	client, err := dynamic.NewForConfig(at.config)
	check(t, err)
	for _, object := range objects {
		eventually(t, fmt.Sprintf("%v is deleted", object), func() bool {
			_, err := client.Resource(object.resource).Namespace(at.namespace).Get(at.ctx, object.name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
}

// releases lists the Secrets in which helm stores revisions.
func releases(t *testing.T, at fixture, selector string) []corev1.Secret {
	t.Helper()
	list, err := at.client.CoreV1().Secrets(at.namespace).List(at.ctx, metav1.ListOptions{LabelSelector: "owner=helm," + selector})
	check(t, err)
	return list.Items
}

// By server-side apply, the default of helm 4.
func TestHelmInstallUpgradeRollbackUninstall(t *testing.T) {
	at := start(t)
	helm := find(t, at, "helm")
	boxes, options := chart(helm)
	helm.run("lint", "web", "--strict")
	helm.run(append([]string{"install", "shop", "web"}, options...)...)

	all := objects(boxes, "shop")
	checkReleased(t, at, "shop", all, metav1.ManagedFieldsOperationApply)
	definitions, err := apiextensions.NewForConfig(at.config)
	check(t, err)
	defined, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Get(at.ctx, "boxes."+boxes.Group, metav1.GetOptions{})
	check(t, err)
	established := false
	for _, condition := range defined.Status.Conditions {
		established = established || condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
	}
	require(t, established, "%v", defined.Status)
	maps := at.client.CoreV1().ConfigMaps(at.namespace)
	hook, err := maps.Get(at.ctx, "shop-web-hook", metav1.GetOptions{})
	check(t, err)
	require(t, hook.Data["revision"] == "1", "%v", hook.Data)
	require(t, hook.Annotations["meta.helm.sh/release-name"] == "", "a hook is not part of the release: %v", hook.Annotations)
	kept := releases(t, at, "name=shop,status=deployed")
	require(t, len(kept) == 1 && kept[0].Type == "helm.sh/release.v1", "%v", kept)

	var list []struct{ Name, Namespace, Revision, Status, Chart string }
	helm.read(&list, "list")
	require(t, len(list) == 1, "%v", list)
	first := list[0]
	require(t, first.Name == "shop" && first.Namespace == at.namespace && first.Revision == "1", "%v", first)
	require(t, first.Status == "deployed" && first.Chart == "web-0.1.0", "%v", first)
	status := helm.run("status", "shop")
	for _, part := range []string{"STATUS: deployed", "==> v1/Deployment", "==> v1/RoleBinding", "==> v1/Box"} {
		require(t, strings.Contains(status, part), "%q is missing:\n%s", part, status)
	}
	manifest := helm.run("get", "manifest", "shop")
	for _, part := range []string{"kind: Deployment", "kind: Box", "color: blue", "replicas: 1"} {
		require(t, strings.Contains(manifest, part), "%q is missing:\n%s", part, manifest)
	}
	require(t, strings.Contains(helm.run("get", "hooks", "shop"), "name: shop-web-hook"), "the hook is missing")

	deployments := at.client.AppsV1().Deployments(at.namespace)
	replicas := func(want int32) {
		t.Helper()
		found, err := deployments.Get(at.ctx, "shop-web", metav1.GetOptions{})
		check(t, err)
		require(t, *found.Spec.Replicas == want, "%d replicas", *found.Spec.Replicas)
	}
	replicas(1)
	// A dry run changes nothing. An upgrade deletes what the new revision does not contain.
	upgrade := []string{"upgrade", "shop", "web", "--set", "nodeSelector.node=none,replicaCount=3"}
	helm.run(append(upgrade, "--dry-run=server")...)
	replicas(1)
	helm.run(upgrade...)
	replicas(3)
	_, err = maps.Get(at.ctx, "shop-web-settings", metav1.GetOptions{})
	require(t, apierrors.IsNotFound(err), "the settings are not deleted: %v", err)
	again, err := maps.Get(at.ctx, "shop-web-hook", metav1.GetOptions{})
	check(t, err)
	require(t, again.Data["revision"] == "2" && again.UID != hook.UID, "%v", again)

	helm.run("rollback", "shop", "1")
	replicas(1)
	checkReleased(t, at, "shop", all, metav1.ManagedFieldsOperationApply)
	var history []struct {
		Revision int
		Status   string
	}
	helm.read(&history, "history", "shop")
	require(t, len(history) == 3, "%v", history)
	for index, want := range []string{"superseded", "superseded", "deployed"} {
		require(t, history[index].Revision == index+1 && history[index].Status == want, "%v", history)
	}

	// A field that another manager has set is a conflict, unless conflicts are forced.
	check(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		_, err := deployments.UpdateScale(at.ctx, "shop-web", &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "shop-web", Namespace: at.namespace},
			Spec:       autoscalingv1.ScaleSpec{Replicas: 5},
		}, metav1.UpdateOptions{FieldManager: "conformance"})
		return err
	}))
	upgrade = []string{"upgrade", "--install", "--server-side=true", "shop", "web", "--reuse-values", "--set", "replicaCount=2"}
	_, err = helm.try(upgrade...)
	require(t, err != nil && strings.Contains(err.Error(), `conflict with "conformance"`), "no conflict: %v", err)
	replicas(5)
	require(t, len(releases(t, at, "name=shop,status=failed")) == 1, "the failed revision is not stored")
	helm.run(append(upgrade, "--force-conflicts")...)
	replicas(2)

	require(t, strings.Contains(helm.run("uninstall", "shop", "--wait"), "uninstalled"), "not uninstalled")
	checkGone(t, at, all)
	require(t, len(releases(t, at, "name=shop")) == 0, "revisions are not deleted")
	helm.read(&list, "list")
	require(t, len(list) == 0, "%v", list)
	// helm uninstall deletes neither hooks nor the definitions of custom kinds.
	_, err = maps.Get(at.ctx, "shop-web-hook", metav1.GetOptions{})
	check(t, err)
	_, err = definitions.ApiextensionsV1().CustomResourceDefinitions().Get(at.ctx, defined.Name, metav1.GetOptions{})
	check(t, err)
}

// By client-side apply: strategic merge patches, and merge patches for custom kinds.
func TestHelmClientSideApply(t *testing.T) {
	at := start(t)
	helm := find(t, at, "helm")
	boxes, options := chart(helm)
	// --wait waits for the rollout, and the embedded cluster has no controller of Deployments.
	check(t, os.Remove(filepath.Join(helm.folder, "web/templates/deployment.yaml")))
	upgrade := []string{"upgrade", "--install", "shop", "web", "--server-side=false", "--wait", "--rollback-on-failure"}
	helm.run(append(upgrade, options...)...)
	all := objects(boxes, "shop")[1:]
	checkReleased(t, at, "shop", all, metav1.ManagedFieldsOperationUpdate)

	maps := at.client.CoreV1().ConfigMaps(at.namespace)
	settings, err := maps.Get(at.ctx, "shop-web-settings", metav1.GetOptions{})
	check(t, err)
	// Another client changes what helm has set.
	settings.Labels, settings.Annotations, settings.Data = nil, nil, map[string]string{"color": "red"}
	_, err = maps.Update(at.ctx, settings, metav1.UpdateOptions{})
	check(t, err)
	_, err = helm.try(append(upgrade, "--reuse-values", "--set", "service.port=none")...)
	require(t, err != nil && strings.Contains(err.Error(), "cannot unmarshal string"), "not rejected: %v", err)
	require(t, strings.Contains(err.Error(), "has been rolled back"), "not rolled back: %v", err)
	helm.run(append(upgrade, "--reuse-values", "--set", "service.port=81,settings.size=big,replicaCount=4")...)
	checkReleased(t, at, "shop", all, metav1.ManagedFieldsOperationUpdate)
	settings, err = maps.Get(at.ctx, "shop-web-settings", metav1.GetOptions{})
	check(t, err)
	require(t, settings.Data["color"] == "blue" && settings.Data["size"] == "big", "%v", settings.Data)
	service, err := at.client.CoreV1().Services(at.namespace).Get(at.ctx, "shop-web", metav1.GetOptions{})
	check(t, err)
	require(t, len(service.Spec.Ports) == 1 && service.Spec.Ports[0].Port == 81, "%v", service.Spec.Ports)
	client, err := dynamic.NewForConfig(at.config)
	check(t, err)
	box, err := client.Resource(boxes).Namespace(at.namespace).Get(at.ctx, "shop-web", metav1.GetOptions{})
	check(t, err)
	size, _, _ := unstructured.NestedInt64(box.Object, "spec", "size")
	require(t, size == 4, "%v", box.Object)
	helm.run("uninstall", "shop", "--wait")
	checkGone(t, at, all)
}

// The files of a base and an overlay.
var customization = map[string]string{
	"base/kustomization.yaml": `
resources: [deployment.yaml, service.yaml]
configMapGenerator:
  - name: settings
    literals: [color=blue]
    files: [notes.txt]
`,
	"base/notes.txt": "a note\n",
	"base/deployment.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      nodeSelector: {node: none}
      containers:
        - name: web
          image: nginx
          ports: [{name: http, containerPort: 80}]
          envFrom:
            - configMapRef: {name: settings}
`,
	"base/service.yaml": `
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}]
`,
	"overlay/kustomization.yaml": `
resources: [../base]
namespace: NAMESPACE
namePrefix: prod-
labels:
  - pairs: {tier: front}
    includeSelectors: true
  - pairs: {owner: conformance}
images:
  - name: nginx
    newName: registry.example.com/nginx
    newTag: "1.29"
replicas:
  - name: web
    count: 2
configMapGenerator:
  - name: settings
    behavior: merge
    literals: [color=COLOR]
patches:
  - path: resources.yaml
  - target: {kind: Service, name: web}
    patch: |-
      - {op: replace, path: /spec/ports/0/port, value: 8080}
`,
	"overlay/resources.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      containers:
        - name: web
          resources:
            limits: {memory: 64Mi}
`,
}

// build returns the objects that kustomize builds from the overlay.
func build(kustomize tool, color string) []*unstructured.Unstructured {
	t := kustomize.t
	t.Helper()
	values := strings.NewReplacer("NAMESPACE", kustomize.at.namespace, "COLOR", color)
	for name, text := range customization {
		kustomize.write(name, values.Replace(text))
	}
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(kustomize.run("build", "overlay")), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		check(t, err)
		objects = append(objects, object)
	}
}

func TestKustomizeBuildIsAppliedTwice(t *testing.T) {
	at := start(t)
	kustomize := find(t, at, "kustomize")
	client, err := dynamic.NewForConfig(at.config)
	check(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(at.client.Discovery()))
	resource := func(object *unstructured.Unstructured) dynamic.ResourceInterface {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		check(t, err)
		require(t, object.GetNamespace() == at.namespace, "%v", object)
		return client.Resource(mapping.Resource).Namespace(at.namespace)
	}
	apply := func(object *unstructured.Unstructured) *unstructured.Unstructured {
		t.Helper()
		applied, err := resource(object).Apply(at.ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "conformance"})
		check(t, err)
		return applied
	}
	// settings checks the Deployment, and returns the name of the ConfigMap that it refers to.
	settings := func() string {
		t.Helper()
		found, err := at.client.AppsV1().Deployments(at.namespace).Get(at.ctx, "prod-web", metav1.GetOptions{})
		check(t, err)
		require(t, *found.Spec.Replicas == 2, "%v", found.Spec)
		require(t, found.Labels["owner"] == "conformance" && found.Labels["tier"] == "front", "%v", found.Labels)
		require(t, found.Spec.Selector.MatchLabels["tier"] == "front", "%v", found.Spec.Selector)
		pod := found.Spec.Template
		require(t, pod.Labels["tier"] == "front" && pod.Labels["owner"] == "", "%v", pod.Labels)
		require(t, len(pod.Spec.Containers) == 1, "%v", pod.Spec.Containers)
		container := pod.Spec.Containers[0]
		require(t, container.Image == "registry.example.com/nginx:1.29", "%s", container.Image)
		require(t, container.Resources.Limits.Memory().String() == "64Mi", "%v", container.Resources)
		require(t, len(container.EnvFrom) == 1, "%v", container.EnvFrom)
		return container.EnvFrom[0].ConfigMapRef.Name
	}

	objects := build(kustomize, "green")
	require(t, len(objects) == 3, "%v", objects)
	for _, object := range objects {
		made := apply(object)
		// A second apply changes nothing. A controller may write the status in between: try again.
		eventually(t, fmt.Sprintf("a second apply of %s changes nothing", object.GetKind()), func() bool {
			before, err := resource(object).Get(at.ctx, object.GetName(), metav1.GetOptions{})
			check(t, err)
			after := apply(object)
			require(t, after.GetUID() == made.GetUID() && after.GetGeneration() == made.GetGeneration(), "%v", after)
			return after.GetResourceVersion() == before.GetResourceVersion()
		})
	}
	service, err := at.client.CoreV1().Services(at.namespace).Get(at.ctx, "prod-web", metav1.GetOptions{})
	check(t, err)
	require(t, len(service.Spec.Ports) == 1 && service.Spec.Ports[0].Port == 8080, "%v", service.Spec.Ports)
	require(t, service.Spec.Selector["tier"] == "front", "%v", service.Spec.Selector)
	maps := at.client.CoreV1().ConfigMaps(at.namespace)
	green := settings()
	require(t, strings.HasPrefix(green, "prod-settings-"), "%s has no suffix", green)
	found, err := maps.Get(at.ctx, green, metav1.GetOptions{})
	check(t, err)
	require(t, found.Data["color"] == "green" && found.Data["notes.txt"] == "a note\n", "%v", found.Data)

	// With another value the ConfigMap has another name, which the Deployment refers to.
	for _, object := range build(kustomize, "red") {
		apply(object)
	}
	red := settings()
	require(t, red != green, "%s is reused", red)
	found, err = maps.Get(at.ctx, red, metav1.GetOptions{})
	check(t, err)
	require(t, found.Data["color"] == "red", "%v", found.Data)
	_, err = maps.Get(at.ctx, green, metav1.GetOptions{})
	check(t, err)
}
