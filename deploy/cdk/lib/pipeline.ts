// SPDX-License-Identifier: Apache-2.0
// Where releases are kept, and who may deploy them: workflows of one repository, by OIDC, without a key that lasts.
import { aws_ecr as ecr, aws_iam as iam, Duration, RemovalPolicy, type Environment } from "aws-cdk-lib";
import type { Construct } from "constructs";
import type { Context } from "./context.js";
import { acknowledge, documentOf, LeaseholdStack } from "./parts.js";

const ISSUER = "token.actions.githubusercontent.com";
const KEPT_IMAGES = 30;

export class PipelineStack extends LeaseholdStack {
	constructor(scope: Construct, context: Context, env: Environment) {
		super(scope, `LeaseholdPipeline-${context.env}`, context, { env, terminationProtection: context.retain, description: "Leasehold: images, and roles that deploy" });
		const repository = new ecr.Repository(this, "Images", {
			repositoryName: context.imageRepository, imageTagMutability: ecr.TagMutability.IMMUTABLE, imageScanOnPush: true, removalPolicy: RemovalPolicy.RETAIN,
			lifecycleRules: [{ maxImageCount: KEPT_IMAGES }],
		});
		const provider = context.oidcProviderArn || new iam.CfnOIDCProvider(this, "Provider", { url: `https://${ISSUER}`, clientIdList: ["sts.amazonaws.com"] }).attrArn;
		this.role("Deploy", `leasehold-deploy-${context.env}`, provider, context.env, [
			{ Sid: "Bootstrap", Effect: "Allow", Action: ["sts:AssumeRole"], Resource: ["deploy", "file-publishing", "lookup"].map((what) =>
				`arn:aws:iam::${context.account}:role/cdk-hnb659fds-${what}-role-${context.account}-${context.region}`) },
		]);
		const publish = this.role("Publish", `leasehold-publish-${context.env}`, provider, "release", []);
		repository.grantPullPush(publish);
		acknowledge(publish, "GetAuthorizationToken knows no resource", "IAM5[Resource::*]");
	}

	// For jobs of one environment of one repository, and nobody else.
	private role(id: string, name: string, provider: string, environment: string, statements: object[]): iam.Role {
		return new iam.Role(this, id, {
			roleName: name, maxSessionDuration: Duration.hours(1),
			assumedBy: new iam.FederatedPrincipal(provider, { StringEquals: {
				[`${ISSUER}:aud`]: "sts.amazonaws.com", [`${ISSUER}:sub`]: `repo:${this.context.repository}:environment:${environment}`,
			} }, "sts:AssumeRoleWithWebIdentity"),
			...(statements.length ? { inlinePolicies: { calls: documentOf({ Version: "2012-10-17", Statement: statements as never }) } } : {}),
		});
	}
}
