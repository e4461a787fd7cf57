// A kubectl session: what is typed, and what is fed to it. What it prints is in session.golden.

/** One command. It is repeated until its output has `until` in it, where time must pass first. */
export interface Step {
  readonly command: string
  readonly stdin?: string
  readonly until?: RegExp
  /** Only these lines of the output are looked at: the rest differs between versions of kubectl. */
  readonly lines?: RegExp
}

const controller = `
apiVersion: v1
kind: ReplicationController
metadata: {name: whoami}
spec:
  replicas: 3
  selector: {app: whoami}
  template:
    metadata: {labels: {app: whoami}}
    spec:
      containers:
      - {name: whoami, image: "whoami:1", env: [{name: MESSAGE, value: viola}], ports: [{containerPort: 3000}]}
`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:1", ports: [{containerPort: 80, name: http}]}
`

const service = (spec: string): string => `
apiVersion: v1
kind: Service
metadata: {name: odd}
spec: ${spec}
`

/** What it prints is not looked at. */
const silent = /^(?!)/

/** The first pod of the controller, which kubectl is told as a resource/name. */
export const aPod = '$POD'

export const session: readonly Step[] = [
  { command: 'api-resources' },
  { command: 'get nodes -o wide' },
  { command: 'get namespaces' },
  { command: 'auth can-i create pods' },
  { command: 'auth can-i --list', lines: /^(Resources|\*)/ },
  { command: 'get --raw /readyz' },

  { command: 'create -f -', stdin: controller },
  { command: 'create -f -', stdin: controller },
  { command: 'get rc whoami', until: /3 +3 +3/ },
  { command: 'get pods' },
  { command: 'get pods -o custom-columns=NODE:.spec.nodeName --sort-by=.spec.nodeName' },
  { command: 'get pods -o wide', lines: /^NAME/ },
  { command: 'expose rc whoami --port=3000' },
  { command: 'get svc' },
  { command: 'get endpoints whoami', until: /:3000/ },
  { command: 'get endpointslices -l kubernetes.io/service-name=whoami', until: /3000/ },
  { command: 'describe svc whoami', lines: /^(Name|Namespace|Selector|Type|IP|Port|TargetPort|Session Affinity):/ },
  { command: 'describe node node-1', lines: /^(Name|Taints|Unschedulable|PodCIDRs?):/ },

  { command: 'scale rc whoami --replicas=5' },
  { command: 'get rc whoami', until: /5 +5 +5/ },
  { command: `annotate ${aPod} sandbox/ready=false` },
  { command: `get ${aPod}`, until: /0\/1/ },
  { command: 'get rc whoami', until: /5 +5 +4/ },
  { command: `annotate ${aPod} sandbox/ready-` },
  { command: `annotate ${aPod} sandbox/fail=sulk` },
  { command: `annotate --overwrite ${aPod} sandbox/fail=die` },
  { command: `get ${aPod}`, until: /CrashLoopBackOff/ },
  { command: `annotate ${aPod} sandbox/fail-` },
  { command: `get ${aPod}`, until: /1\/1/ },
  { command: `describe ${aPod}`, lines: /^(Namespace|Labels|Status|Controlled By|QoS Class):/ },
  { command: `delete ${aPod} --grace-period=1` },

  { command: 'apply -f -', stdin: deployment },
  { command: 'apply -f -', stdin: deployment },
  { command: 'rollout status deployment/web --timeout=60s' },
  { command: 'get deployment web -o wide' },
  { command: 'set image deployment/web web=web:2' },
  { command: 'rollout status deployment/web --timeout=60s', lines: /successfully/ },
  { command: 'rollout history deployment/web' },
  { command: 'rollout undo deployment/web', lines: /^deployment/ },
  { command: 'rollout status deployment/web --timeout=60s', lines: /successfully/ },
  { command: 'get deployment web -o jsonpath={.spec.template.spec.containers[0].image}' },
  { command: 'rollout restart deployment/web' },
  { command: 'rollout status deployment/web --timeout=60s', lines: /successfully/ },
  { command: 'wait --for=condition=Available deployment/web --timeout=60s' },
  { command: 'diff -f -', stdin: deployment.replace('replicas: 2', 'replicas: 3'), lines: /^[-+] +replicas/ },
  { command: 'apply --server-side -f -', stdin: deployment, lines: /leave out --server-side/ },

  { command: 'expose deployment web --port=80 --target-port=http --type=LoadBalancer' },
  { command: 'get svc web', until: /192\.0\.2\./ },
  { command: 'create service nodeport odd --tcp=80:8080 --node-port=31234' },
  { command: 'patch svc odd -p {"spec":{"ports":[{"port":80,"targetPort":9090}]}}' },
  { command: 'patch svc odd --type=merge -p {"metadata":{"labels":{"tier":"x"}}}' },
  { command: 'patch svc odd --type=json -p [{"op":"replace","path":"/spec/sessionAffinity","value":"ClientIP"}]' },
  { command: 'get svc odd --show-labels' },
  {
    command:
      'get svc odd -o jsonpath={.spec.ports[0].targetPort}/{.spec.sessionAffinityConfig.clientIP.timeoutSeconds}',
  },
  { command: 'label svc odd tier-' },
  { command: 'edit svc odd' },
  { command: 'get svc odd -o jsonpath={.spec.ports[0].port}' },
  { command: 'replace -f -', stdin: service('{type: NodePort, ports: [{port: 82, nodePort: 31234}]}') },
  { command: 'get svc -o name' },
  { command: 'get svc -l app=whoami -o custom-columns=NAME:.metadata.name,TYPE:.spec.type' },
  { command: 'get svc --field-selector metadata.name=odd -o name' },

  { command: 'create -f -', stdin: service('{ports: [{port: 80}]}') },
  {
    command: 'create -f - --validate=false',
    stdin: service('{type: Foo, ports: [{port: 0}, {port: 81}]}').replace('odd', 'bad'),
  },
  { command: 'create service nodeport bad --tcp=80 --node-port=31234' },
  { command: 'create service nodeport bad --tcp=80 --node-port=80' },
  { command: 'get svc nope' },
  { command: 'get nope' },
  { command: 'patch svc web -p {"spec":{"clusterIP":"10.96.0.77","clusterIPs":["10.96.0.77"]}}' },

  { command: 'create namespace demo' },
  { command: 'create configmap settings --from-literal=a=b -n demo' },
  { command: 'create secret generic hidden --from-literal=a=b -n demo' },
  { command: 'create serviceaccount robot -n demo' },
  { command: 'create deployment idle --image=idle --replicas=1 -n demo' },
  { command: 'get configmaps,secrets,serviceaccounts -n demo' },
  { command: 'get configmap settings -n demo -o yaml' },
  { command: 'delete namespace demo' },
  { command: 'get namespace demo' },

  { command: 'cordon node-1' },
  { command: 'get nodes' },
  { command: 'drain node-1 --force', lines: silent },
  { command: 'get pods --field-selector spec.nodeName=node-1', until: /No resources/ },
  { command: 'uncordon node-1' },
  { command: 'delete rc whoami --cascade=orphan' },
  { command: 'get rc' },
  { command: 'delete pods -l app=whoami --grace-period=0 --force', lines: silent },
  { command: 'delete svc,deployment --all' },
  { command: 'get pods', until: /No resources/ },
  { command: 'get svc -o name', until: /kubernetes/ },
]
