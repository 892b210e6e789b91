import { useQuery } from '@tanstack/react-query';
import { api, dataOf } from '../api/client';
import { useAccount } from '../data/account';
import { credits, text } from '../text/you';
import { Facts } from '../ui/Figures';
import { Panel } from '../ui/Panel';
import { Table } from '../ui/Table';

/** useVersion reads the version of the service for operators, and that of its API for everybody else. */
function useVersion() {
  const { me } = useAccount();

  return useQuery({
    queryKey: ['version', me.operator],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      if (me.operator) {
        return dataOf(await api.GET('/operator/status')).version;
      }
      const response = await fetch('/api/v2/openapi.json');
      const document = (await response.json()) as { info: { version: string } };
      return document.info.version;
    },
  });
}

/** About names the version, the licence, and those whose work the studio is made with. */
export function About() {
  const { me } = useAccount();
  const version = useVersion();

  return (
    <>
      <Panel title={text.about}>
        <Facts
          facts={[
            [me.operator ? text.versionService : text.versionApi, version.data ?? '…'],
            [text.licence, text.licenceName],
            [
              text.reference,
              <a key="reference" href="/docs/api">
                {text.referenceLink}
              </a>,
            ],
          ]}
        />
      </Panel>
      <Panel title={text.credits}>
        <Table
          label={text.credits}
          rows={credits}
          keyOf={(row) => row.name}
          columns={[
            {
              head: text.creditName,
              cell: (row) => (
                <a href={row.link} target="_blank" rel="noreferrer">
                  {row.name}
                </a>
              ),
            },
            { head: text.creditBy, cell: (row) => row.by },
            { head: text.creditFor, cell: (row) => row.use, wideOnly: true },
            { head: text.creditLicence, cell: (row) => row.licence },
          ]}
        />
      </Panel>
    </>
  );
}
